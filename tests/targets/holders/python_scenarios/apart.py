"""Holders of which docs/sampling.md says that they are not named, or another thread is."""

import asyncio
import threading

from python_scenarios.blocks import plain
from python_scenarios.onlookers import after_block, has_references
from python_scenarios.registry import (
    KEPT,
    arrive,
    held_by,
    hold,
    say,
    scenario,
    start,
    start_waiter,
    takes,
)


@held_by()
def apart_acquire(lock):
    lock.acquire()
    hold()


@held_by(onlookers=[has_references, after_block])
def apart_acquire_beside_onlookers(lock):
    apart_acquire(lock)


class Guard:
    """A context manager whose methods call those of the lock."""

    def __init__(self, lock):
        self.lock = lock

    def __enter__(self):
        self.lock.acquire()

    def __exit__(self, *_):
        self.lock.release()


@held_by()
def apart_acquire_in_enter(lock):
    with Guard(lock):
        hold()


@held_by(make=lambda: threading.Semaphore(1))
def apart_semaphore_of_one(lock):
    plain(lock)


@scenario
def apart_suspended_coroutine():
    lock = threading.Lock()

    async def runs():
        with lock:
            arrive()
            await asyncio.sleep(100_000)

    holder = start(asyncio.run, runs())
    say({start_waiter(takes, lock): [holder]})


@scenario
def apart_suspended_generator():
    lock = threading.Lock()

    def drives():
        def values():
            with lock:
                yield 1

        KEPT.append(values())
        next(KEPT[0])
        hold()

    holder = start(drives)
    say({start_waiter(takes, lock): [holder]})


def released_in_block(lock):
    with lock:
        lock.release()
        hold()


@held_by(onlookers=[released_in_block])
def apart_beside_released_block(lock):
    plain(lock)


@held_by(onlookers=[released_in_block])
def apart_acquire_beside_released_block(lock):
    apart_acquire(lock)
