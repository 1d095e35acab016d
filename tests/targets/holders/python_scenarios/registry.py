"""Starts the threads of the scenarios, and says the truth when they sleep."""

import json
import os
import queue
import threading

arrived = queue.SimpleQueue()  # tids of holders and onlookers
SCENARIOS = {}  # functions by name
KEPT = []  # what must not be freed
TIMES_ASLEEP = 20


def arrive():
    arrived.put(threading.get_native_id())


def sleep_for_ever():
    os.read(os.pipe()[0], 1)


def hold():
    """Called with the lock held, or by an onlooker without it."""
    arrive()
    sleep_for_ever()


def start(function, *args):
    """Start a thread that arrives; return its tid."""
    threading.Thread(target=function, args=args, daemon=True).start()
    return arrived.get()


def start_waiter(function, *args):
    def run():
        arrive()
        function(*args)
        print("a waiter got the lock", flush=True)

    return start(run)


def takes(lock):
    with lock:
        pass


def is_asleep(tid):
    """Return whether a thread sleeps in futex()."""
    with open(f"/proc/self/task/{tid}/syscall") as file:
        return file.read().startswith("202 ")


def say(truth):
    """Say who waits for whom: {tid of the waiter: [tids of the holders]}."""
    asleep = 0
    while asleep < TIMES_ASLEEP:  # in turn, for a waiter may have slept at the GIL
        asleep = asleep + 1 if all(map(is_asleep, truth)) else 0
    print(json.dumps({"waiters": truth}), flush=True)


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


def held_by(make=threading.Lock, take=takes, onlookers=()):
    """Make a scenario of a function that holds a lock."""

    def register(holds):
        def run():
            lock = make()
            for onlooker in onlookers:
                start(onlooker, lock)
            holder = start(holds, lock)
            say({start_waiter(take, lock): [holder]})

        SCENARIOS[holds.__name__] = run
        return holds

    return register
