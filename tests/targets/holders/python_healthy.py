"""Threads hold Python's locks for seconds, take them in one order, and never deadlock.

Says "ready" when all run; ends with its stdin.
"""

import contextlib
import os
import queue
import random
import sys
import threading
import time

COUNT = 12  # threads
arrived = threading.Semaphore(0)
messages = queue.Queue(2)
LOCKS = [
    threading.Lock(),
    threading.RLock(),
    threading.Condition(threading.Lock()),
    messages.mutex,
    threading.Lock(),
]


@contextlib.contextmanager
def guarded(lock):
    with lock:
        yield


def rest():
    time.sleep(random.uniform(0.1, 1.0))


def in_blocks(locks):
    if not locks:
        return rest()
    with locks[0]:
        in_blocks(locks[1:])


def in_context_managers(locks):
    if not locks:
        return rest()
    with guarded(locks[0]):
        in_context_managers(locks[1:])


def in_exit_stack(locks):
    with contextlib.ExitStack() as stack:
        for lock in locks:
            stack.enter_context(lock)
        rest()
        stack.close()
        rest()


def hands_the_locks_on(locks):
    with contextlib.ExitStack() as stack:
        for lock in locks:
            stack.enter_context(guarded(lock))
        with stack.pop_all():
            rest()
        rest()


def by_acquire(locks):
    for lock in locks:
        lock.acquire()
    rest()
    for lock in locks:
        lock.release()


def in_wait(_):
    with LOCKS[2]:
        LOCKS[2].wait(random.uniform(0.1, 1.0))


WAYS = [in_blocks, in_context_managers, in_exit_stack, hands_the_locks_on, by_acquire, in_wait]


def works():
    arrived.release()
    while True:
        first, last = sorted(random.sample(range(len(LOCKS) + 1), 2))
        random.choice(WAYS)(LOCKS[first:last])


for _ in range(COUNT):
    threading.Thread(target=works, daemon=True).start()
    arrived.acquire()
print("ready", flush=True)
sys.stdin.read()
os._exit(0)
