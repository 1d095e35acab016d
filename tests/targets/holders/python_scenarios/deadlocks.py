"""The lock of the interpreter, and deadlocks."""

import ctypes
import json
import queue
import threading

from python_scenarios.registry import SCENARIOS, arrive, say, scenario, start, start_waiter


def burn():
    while True:
        pass


@scenario
def gil_of_thread():
    is_said = threading.Event()

    def keeps():
        arrive()
        is_said.wait()
        ctypes.PyDLL(None).pause()

    holder = start(keeps)
    waiters = [start_waiter(burn) for _ in range(2)]
    print(json.dumps({"waiters": {waiter: [holder] for waiter in waiters}}), flush=True)
    is_said.set()


@scenario
def gil_of_main_thread():
    waiter = start_waiter(burn)
    print(json.dumps({"waiters": {waiter: [threading.get_native_id()]}}), flush=True)
    ctypes.PyDLL(None).pause()


def crosses(*locks):
    """Each thread holds a lock and wants the next one."""
    start_all = threading.Event()

    def run(mine, wanted):
        with mine:
            arrive()
            start_all.wait()
            with wanted:
                print("a waiter got the lock", flush=True)

    tids = [start(run, lock, locks[n - 1]) for n, lock in enumerate(locks)]
    start_all.set()
    say({tid: [tids[n - 1]] for n, tid in enumerate(tids)})


def deadlock(name, *makers):
    SCENARIOS[f"deadlock_{name}"] = lambda: crosses(*(make() for make in makers))


deadlock("of_two", threading.Lock, threading.Lock)
deadlock("of_three", threading.Lock, threading.Lock, threading.Lock)
deadlock("of_lock_and_rlock", threading.Lock, threading.RLock)
deadlock("of_conditions", *[lambda: threading.Condition(threading.Lock())] * 2)
deadlock("of_queues", *[lambda: queue.Queue().not_full] * 2)
deadlock("of_lock_and_queue", threading.Lock, lambda: queue.Queue().mutex)
deadlock("certain_of_two", threading.RLock, threading.RLock)
deadlock("certain_of_three", threading.RLock, threading.RLock, threading.Condition)


@scenario
def deadlock_certain_of_gil_and_mutex():
    mutex = ctypes.create_string_buffer(64)  # PTHREAD_MUTEX_INITIALIZER

    def locks():
        ctypes.CDLL(None).pthread_mutex_lock(mutex)
        arrive()
        burn()

    waiter, main = start(locks), threading.get_native_id()
    print(json.dumps({"waiters": {waiter: [main], main: [waiter]}}), flush=True)
    ctypes.PyDLL(None).pthread_mutex_lock(mutex)
