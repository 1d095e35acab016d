"""Condition waits that are over: the thread sleeps for the mutex by now."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.shared_file import SharedFile, key
from unit.builders.raw_threads import (
    NOW,
    SECOND,
    by_tid,
    futex_wait,
    held_record,
    lock_row,
    raw_thread,
    wait_block,
)

from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.linux.threads import KernelThreads
from locktop.collector.native import lib
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.reader import RawThread
from locktop.collector.shm.segment import SharedMemory
from locktop.collector.sources.preload.condition_wakeups import ConditionWakeups

WAITER, HOLDER = 11, 12
COND, MUTEX = 1, 2  # ids
COND_KEY, MUTEX_KEY = key(lib.LT_KIND_COND, 0x3000), key(lib.LT_KIND_MUTEX, 0x4000)


class Calls(KernelThreads):
    """The calls in which threads sleep."""

    def __init__(self) -> None:
        self.by_tid: dict[int, SystemCall | None] = {WAITER: futex_wait(0x4000)}

    def call(self, tid: int) -> SystemCall | None:
        if tid not in self.by_tid:
            raise FileNotFoundError
        return self.by_tid[tid]


class Condition:
    """A condition with a mutex, of which a signal came at ``signalled``."""

    def __init__(self, directory: Path, signalled: int) -> None:
        file = SharedFile()
        _, index = file.add_condition(signalled)
        path = file.save(directory)
        memory = SharedMemory(os.open(path, os.O_RDONLY), str(path))
        self.calls = Calls()
        self.rows = {
            COND: lock_row(lock=COND, kind=lib.LT_KIND_COND, type=index + 1),
            MUTEX: lock_row(lock=MUTEX, kind=lib.LT_KIND_MUTEX, address=0x4000),
        }
        self.wakeups = ConditionWakeups(1, memory, Clock(memory.header()), self.calls)

    def waits(self, **fields: int) -> RawThread:
        """Return the waiter as the reading after a scan shows it."""
        wait = wait_block(COND_KEY, COND, **{"parties": MUTEX, "flags": 1, "holder": 5} | fields)
        threads = by_tid(
            raw_thread(WAITER, wait), raw_thread(HOLDER, held=[held_record(MUTEX_KEY, MUTEX)])
        )
        found = self.wakeups.apply(threads, self.rows)
        assert found[HOLDER] is threads[HOLDER]
        return found[WAITER]


def mutex_since(thread: RawThread) -> int | None:
    """Return since when the thread waits for the mutex; None if it waits for the condition."""
    assert thread.wait is not None
    if thread.wait.key == COND_KEY:
        return None
    assert (thread.wait.key, thread.wait.lock) == (MUTEX_KEY, MUTEX)
    assert (thread.wait.flags, thread.wait.holder, thread.wait.parties) == (0, 0, 0)
    return thread.wait.since


def test_a_woken_thread_waits_for_the_mutex_since_the_signal(tmp_path: Path) -> None:
    condition = Condition(tmp_path, NOW - 2 * SECOND)
    assert mutex_since(condition.waits(since=NOW - 5 * SECOND)) == NOW - 2 * SECOND


@pytest.mark.parametrize("since", [NOW - 2 * SECOND, NOW - SECOND])
def test_a_signal_before_the_wait_woke_nobody(tmp_path: Path, since: int) -> None:
    condition = Condition(tmp_path, NOW - 2 * SECOND)
    assert mutex_since(condition.waits(since=since)) == NOW


@pytest.mark.parametrize("late", [0, 1])
def test_a_signal_after_the_reading_is_damage(tmp_path: Path, late: int) -> None:
    waiter = Condition(tmp_path, NOW + late).waits(since=NOW - 5 * SECOND)
    assert mutex_since(waiter) == NOW
    assert waiter.is_wait_older == bool(late)


def test_the_wait_for_the_mutex_keeps_its_beginning(tmp_path: Path) -> None:
    condition = Condition(tmp_path, 0)
    first = condition.waits(since=NOW - 5 * SECOND)
    assert mutex_since(first) == NOW
    wait = wait_block(COND_KEY, COND, parties=MUTEX, since=NOW - 5 * SECOND)
    later = by_tid(
        raw_thread(WAITER, wait, now=NOW + SECOND),
        raw_thread(HOLDER, held=[held_record(MUTEX_KEY, MUTEX)]),
    )
    assert mutex_since(condition.wakeups.apply(later, condition.rows)[WAITER]) == NOW
    later[WAITER] = raw_thread(WAITER, wait._replace(seq=4), now=NOW + SECOND)
    assert mutex_since(condition.wakeups.apply(later, condition.rows)[WAITER]) == NOW + SECOND


@pytest.mark.parametrize("call", [None, futex_wait(0x3000), SystemCall(0, (0,) * 6, 0, 0)])
def test_a_thread_that_sleeps_elsewhere_waits_for_the_condition(
    tmp_path: Path, call: SystemCall | None
) -> None:
    condition = Condition(tmp_path, NOW - SECOND)
    condition.calls.by_tid[WAITER] = call
    assert mutex_since(condition.waits(since=0)) is None


def test_a_thread_that_has_ended_waits_for_the_condition(tmp_path: Path) -> None:
    condition = Condition(tmp_path, NOW - SECOND)
    condition.calls.by_tid.clear()
    assert mutex_since(condition.waits(since=0)) is None


def test_nobody_waits_for_a_free_mutex(tmp_path: Path) -> None:
    condition = Condition(tmp_path, NOW - SECOND)
    waiter = raw_thread(WAITER, wait_block(COND_KEY, COND, parties=MUTEX, since=0))
    found = condition.wakeups.apply(by_tid(waiter), condition.rows)
    assert found == {WAITER: waiter}


def test_an_unknown_mutex_is_no_wait_for_it(tmp_path: Path) -> None:
    condition = Condition(tmp_path, NOW - SECOND)
    del condition.rows[MUTEX]
    assert mutex_since(condition.waits(since=0)) is None


def test_other_waits_stay_as_they_are(tmp_path: Path) -> None:
    condition = Condition(tmp_path, NOW - SECOND)
    wait = wait_block(key(lib.LT_KIND_BARRIER, 0x3000), COND, parties=MUTEX)
    barrier, runs = raw_thread(WAITER, wait), raw_thread(13)
    holder = raw_thread(HOLDER, held=[held_record(MUTEX_KEY, MUTEX)])
    threads = by_tid(barrier, runs, holder)
    assert condition.wakeups.apply(threads, condition.rows) == threads


@pytest.mark.parametrize("number", [0, 2])
def test_a_condition_without_a_record_has_no_known_signal(tmp_path: Path, number: int) -> None:
    condition = Condition(tmp_path, NOW - SECOND)
    condition.rows[COND] = condition.rows[COND]._replace(type=number)
    assert mutex_since(condition.waits(since=0)) == NOW


def test_a_condition_without_a_row_has_no_known_signal(tmp_path: Path) -> None:
    condition = Condition(tmp_path, NOW - SECOND)
    del condition.rows[COND]
    assert mutex_since(condition.waits(since=0)) == NOW
