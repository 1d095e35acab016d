"""How the waiter waits, other locks, and what the holder does."""

import os
import queue
import select
import socket
import subprocess
import threading
import time

from python_scenarios.blocks import plain
from python_scenarios.registry import (
    KEPT,
    arrive,
    held_by,
    hold,
    say,
    scenario,
    sleep_for_ever,
    start,
    start_waiter,
    takes,
)


@held_by(take=lambda lock: lock.acquire())
def waiter_in_acquire(lock):
    plain(lock)


@held_by(take=lambda lock: lock.acquire(timeout=100_000))
def waiter_with_timeout(lock):
    plain(lock)


@held_by(make=queue.Queue, take=lambda messages: messages.put(1))
def mutex_of_queue(messages):
    with messages.mutex:
        hold()


@held_by(make=queue.Queue, take=lambda messages: messages.get())
def condition_of_queue(messages):
    with messages.not_full:
        hold()


@held_by(make=lambda: threading.Semaphore(0), take=lambda semaphore: semaphore.release())
def lock_of_semaphore(semaphore):
    with vars(semaphore)["_cond"]:
        hold()


@held_by(make=threading.RLock)
def rlock_twice(lock):
    with lock, lock:
        hold()


@held_by(make=threading.RLock)
def rlock_by_acquire(lock):
    lock.acquire()
    hold()


@held_by(make=threading.Condition)
def condition(lock):
    plain(lock)


@held_by(make=lambda: threading.Condition(threading.Lock()))
def condition_of_lock(lock):
    plain(lock)


@held_by()
def holder_receives(lock):
    KEPT.append(socket.socketpair())
    with lock:
        arrive()
        KEPT[0][0].recv(1)


@held_by()
def holder_in_time_sleep(lock):
    with lock:
        arrive()
        time.sleep(100_000)


@held_by()
def holder_waits_for_process(lock):
    with lock:
        process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
        arrive()
        process.wait()


@held_by()
def holder_runs(lock):
    number = 0
    with lock:
        arrive()
        while True:
            number += 1


@held_by()
def holder_at_poll(lock):
    with lock:
        arrive()
        select.select([os.pipe()[0]], [], [])


@held_by()
def holder_in_join(lock):
    other = threading.Thread(target=sleep_for_ever, daemon=True)
    other.start()
    with lock:
        arrive()
        other.join()


@held_by()
def holder_at_event(lock):
    with lock:
        arrive()
        threading.Event().wait()


@held_by()
def holder_at_queue(lock):
    with lock:
        arrive()
        queue.Queue().get()


@scenario
def holder_at_other_lock():
    first, second = threading.Lock(), threading.Lock()

    def holds(lock, wanted):
        with lock:
            arrive()
            takes(wanted)

    last = start(plain, second)
    middle = start(holds, first, second)
    say({middle: [last], start_waiter(takes, first): [middle]})
