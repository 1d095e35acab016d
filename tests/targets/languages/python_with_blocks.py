"""Threads wait for locks of Python whose holders are in ``with`` blocks, or only look so.

Prints a JSON object when all of them sleep; ends with its input. For each waiter it has the threads
that hold the lock and may be named: {tid of the waiter: [way, [tids of the holders]]}.
"""

import contextlib
import json
import os
import queue
import sys
import threading

forever = threading.Event()
ids = {}  # by way and role
ready = threading.Semaphore(0)
suspended = []


def sleeps_for_good(role):
    ids[role] = threading.get_native_id()
    ready.release()
    forever.wait()


def in_block(lock, role):
    with lock:
        sleeps_for_good(role)


def deep_in_block(lock, role):
    other = threading.Lock()
    with other:
        for _ in range(2):
            try:
                with lock:
                    try:
                        raise ValueError
                    except ValueError:
                        with open(os.devnull):
                            sleeps_for_good(role)
            finally:
                del other


def twice_in_block(lock, role):
    with lock, lock:
        sleeps_for_good(role)


def by_acquire(lock, role):
    lock.acquire()
    sleeps_for_good(role)


def after_block(lock, role):
    """The values of the block still lie above the top of the stack."""
    with lock:
        pass
    sleeps_for_good(role)


def after_exception(lock, role):
    with contextlib.suppress(ValueError), lock:
        raise ValueError
    sleeps_for_good(role)


def has_references(lock, role):
    leave, enter, both = lock.__exit__, lock.__enter__, [lock, lock.__exit__]
    for _ in iter([leave]):
        sleeps_for_good(role)
    return enter, both


def in_exit_stack(lock, role):
    with contextlib.ExitStack() as stack:
        stack.enter_context(lock)
        sleeps_for_good(role)


def in_wait(condition, role):
    with condition:
        ids[role] = threading.get_native_id()
        ready.release()
        condition.wait()


def in_wait_of_lock(lock, role):
    condition = threading.Condition(lock)
    with lock:
        ids[role] = threading.get_native_id()
        ready.release()
        condition.wait()


def drives_generator(lock, role):
    def values():
        with lock:
            yield 1
            yield 2

    driven = values()
    suspended.append(driven)
    next(driven)
    sleeps_for_good(role)


def in_generator(lock, role):
    def values():
        with lock:
            yield sleeps_for_good(role)

    list(values())


def takes(lock):
    with lock:
        pass


def puts(messages):
    messages.put(1)


#: way: the lock, functions that do not hold it, the function that holds it, whether it is named
WAYS = {
    "block": (threading.Lock, [], in_block, True),
    "deep": (threading.Lock, [after_block, has_references], deep_in_block, True),
    "acquire": (threading.Lock, [has_references], by_acquire, False),
    "left": (threading.Lock, [after_block, after_exception], by_acquire, False),
    "left_and_taken": (threading.Lock, [after_exception, after_block], in_block, True),
    "exit_stack": (threading.Lock, [], in_exit_stack, True),
    "condition": (lambda: threading.Condition(threading.Lock()), [in_wait], in_block, True),
    "condition_of_lock": (threading.Lock, [in_wait_of_lock], in_block, True),
    "generator": (threading.Lock, [], in_generator, True),
    "suspended": (threading.Lock, [], drives_generator, False),
    "owned": (threading.RLock, [after_block], in_block, True),
    "owned_twice": (threading.RLock, [], twice_in_block, True),
    "owned_by_acquire": (threading.RLock, [has_references], by_acquire, True),
}


def start(function, *args):
    threading.Thread(target=function, args=args, daemon=True).start()


def sleeps(tid):
    with open(f"/proc/self/task/{tid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "S"


def waits(way, take, lock):
    def run():
        ids[way, "waiter"] = threading.get_native_id()
        ready.release()
        take(lock)

    start(run)
    ready.acquire()


def begin(way):
    make, others, hold, _ = WAYS[way]
    lock = make()
    for number, other in enumerate(others):
        start(other, lock, (way, number))
        ready.acquire()
        while not sleeps(ids[way, number]):
            pass
    start(hold, lock, (way, "holder"))
    ready.acquire()
    waits(way, takes, lock)


def begin_queue():
    """A thread that puts waits for the lock inside of the queue."""
    messages = queue.Queue()
    start(in_block, messages.mutex, ("queue", "holder"))
    ready.acquire()
    waits("queue", puts, messages)


for name in WAYS:
    begin(name)
begin_queue()
asleep = 0
while asleep < 20:  # in turn, each time
    asleep = asleep + 1 if all(map(sleeps, ids.values())) else 0
truth = {}
for name in [*WAYS, "queue"]:
    is_named = name == "queue" or WAYS[name][3]
    truth[ids[name, "waiter"]] = [name, [ids[name, "holder"]] if is_named else []]
print(json.dumps(truth), flush=True)
sys.stdin.read()
os._exit(0)
