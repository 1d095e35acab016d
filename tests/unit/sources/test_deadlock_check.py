"""Deadlocks that the preload source reports from files made by hand."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from support.shared_file import SharedFile, key, scan

from locktop.collector.native import lib

MUTEX = key(lib.LT_KIND_MUTEX, 0x1000)
OTHER_MUTEX = key(lib.LT_KIND_MUTEX, 0x2000)


def ring(file: SharedFile, tids: tuple[int, int], **wait: int) -> None:
    """Two threads that each wait for the mutex of the other thread."""
    locks = [file.add_lock(lib.LT_KIND_MUTEX, address) for address in (0x1000, 0x2000)]
    keys = [MUTEX, OTHER_MUTEX]
    for n, tid in enumerate(tids):
        thread = file.add_thread(tid)
        file.hold(thread, locks[n], keys[n])
        file.wait(thread, locks[1 - n], keys[1 - n], since=time.monotonic_ns(), **wait)


def test_a_deadlock_is_certain_in_one_scan(directory: Path, second_tid: int) -> None:
    file = SharedFile()
    ring(file, (os.getpid(), second_tid))
    deadlocks = scan(file, directory).deadlocks
    assert [found.certain for found in deadlocks] == [True]
    assert {edge.tid for edge in deadlocks[0].cycle} == {os.getpid(), second_tid}


def test_waits_with_a_time_limit_are_no_deadlock(directory: Path, second_tid: int) -> None:
    file = SharedFile()
    ring(file, (os.getpid(), second_tid), flags=lib.LT_WAIT_TIMED)
    assert scan(file, directory).deadlocks == ()


def test_an_ended_thread_is_in_no_deadlock(directory: Path) -> None:
    file = SharedFile()
    ring(file, (os.getpid(), 4_000_000))
    assert scan(file, directory).deadlocks == ()


def test_a_recursive_mutex_is_no_deadlock(directory: Path) -> None:
    for recursive in (True, False):
        file = SharedFile()
        lock = file.add_lock(lib.LT_KIND_MUTEX, 0x1000, type=int(recursive))
        thread = file.add_thread(os.getpid())
        file.hold(thread, lock, MUTEX)
        file.wait(thread, lock, MUTEX, since=1, holder=os.getpid())
        assert len(scan(file, directory).deadlocks) == (0 if recursive else 1)


def test_a_lock_released_by_other_threads_is_in_no_deadlock(
    directory: Path, second_tid: int
) -> None:
    file = SharedFile()
    ring(file, (os.getpid(), second_tid))
    file.lock(1).foreign_releases = 1
    assert scan(file, directory).deadlocks == ()


@pytest.mark.parametrize(
    ("kind", "type_", "certain"),
    [
        (lib.LT_KIND_MUTEX, 0, False),
        (lib.LT_KIND_RWLOCK, 16, False),
        (lib.LT_KIND_SEM, 0, True),
        (lib.LT_KIND_MUTEX, 16, True),  # robust: taken over from a dead thread
    ],
)
def test_no_deadlock_is_certain_if_locks_are_handed_over(
    directory: Path, second_tid: int, kind: int, type_: int, certain: bool
) -> None:
    file = SharedFile()
    ring(file, (os.getpid(), second_tid))
    file.add_lock(kind, 0x3000, type=type_, foreign_releases=1)
    (found,) = scan(file, directory).deadlocks
    assert (found.certain, bool(found.doubt)) == (certain, not certain)
