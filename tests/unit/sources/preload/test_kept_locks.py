"""Locks in the held lists of ended threads: which of them are misuses that nobody noted yet."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.shared_file import SharedFile, key, scan

from locktop.collector.model import MisuseKind
from locktop.collector.native import lib

#: Ids that no thread of this process has.
GONE, ALSO_GONE = 1 << 30, (1 << 30) + 1
MUTEX = key(lib.LT_KIND_MUTEX, 0x1000)
RWLOCK = key(lib.LT_KIND_RWLOCK, 0x1000)
ROBUST = 16


def kept(file: SharedFile, directory: Path) -> list[tuple[int, int, int]]:
    """Return the thread, lock and count of each misuse."""
    found = scan(file, directory).misuses
    assert all(one.kind is MisuseKind.KEPT_AT_END for one in found)
    return [(one.tid, one.lock, one.count) for one in found]


def file_with(tid: int, **fields: int) -> tuple[SharedFile, int]:
    """Return a file with a thread that holds a mutex; ``fields`` are those of the mutex."""
    file = SharedFile()
    file.add_thread(os.getpid())
    lock = file.add_lock(lib.LT_KIND_MUTEX, 0x1000, **fields)
    file.hold(file.add_thread(tid), lock, MUTEX)
    return file, lock


def test_a_thread_that_is_gone_kept_its_lock(directory: Path) -> None:
    file, lock = file_with(GONE)
    assert kept(file, directory) == [(GONE, lock, 1)]


def test_a_living_thread_keeps_nothing(directory: Path, second_tid: int) -> None:
    file, _ = file_with(second_tid)
    assert kept(file, directory) == []


@pytest.mark.parametrize(
    "fields", [{"type": ROBUST}, {"destroyed": 1}, {"foreign_releases": 1}], ids=str
)
def test_a_lock_that_may_have_been_released_is_no_misuse(
    directory: Path, fields: dict[str, int]
) -> None:
    file, _ = file_with(GONE, **fields)
    assert kept(file, directory) == []


def test_the_locks_of_one_call_are_one_entry(directory: Path) -> None:
    file = SharedFile()
    file.add_thread(os.getpid())
    lock = file.add_lock(lib.LT_KIND_RWLOCK, 0x1000)
    for tid in (GONE, ALSO_GONE):
        file.hold(file.add_thread(tid), lock, RWLOCK, lib.LT_HELD_SHARED)
    assert kept(file, directory) == [(GONE, lock, 2)]


def test_a_thread_that_the_library_collected_is_not_counted_again(directory: Path) -> None:
    file = SharedFile()
    file.add_thread(os.getpid())
    lock = file.add_lock(lib.LT_KIND_MUTEX, 0x1000)
    file.hold(file.add_thread(GONE, state=lib.LT_THREAD_KEPT), lock, MUTEX)
    found = scan(file, directory)
    assert found.misuses == ()
    assert [thread.tid for thread in found.threads if thread.holds] == [GONE]
