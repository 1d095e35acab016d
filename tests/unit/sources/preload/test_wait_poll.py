"""The waits of this moment, from one copy of the threads' blocks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.shared_file import SharedFile, key

from locktop.collector.model import Kind
from locktop.collector.native import lib
from locktop.collector.shm import layout
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.segment import GrowingArray, SharedMemory
from locktop.collector.sources.base import OngoingWait
from locktop.collector.sources.preload import wait_poll
from locktop.collector.sources.preload.idle_cache import IdleCache

SECOND = 1_000_000_000
MUTEX = key(lib.LT_KIND_MUTEX, 0x1000)
TID = 11


class Verdicts(IdleCache):
    """One verdict for one lock and call site."""

    def idle(self, lock: int, stack: int, site: int) -> bool | None:
        return True if (lock, stack, site) == (3, 4, 5) else None


def poll(file: SharedFile, directory: Path) -> dict[int, OngoingWait]:
    path = file.save(directory)
    memory = SharedMemory(os.open(path, os.O_RDONLY), str(path))
    threads = GrowingArray(memory, layout.THREADS_AT, layout.THREAD.size)
    try:
        return wait_poll.read(threads, Clock(memory.header()), Verdicts())
    finally:
        memory.close()


def file_with_wait(**fields: int) -> tuple[SharedFile, Any]:
    file = SharedFile()
    file.add_thread(TID - 1)
    block = file.add_thread(TID, birth=5)
    file.wait(block, 3, MUTEX, **fields)
    return file, block


def test_a_wait_has_its_lock_and_length(tmp_path: Path) -> None:
    since = time.monotonic_ns() - 10 * SECOND
    file, _ = file_with_wait(since=since, stack=4, site=5)
    found = poll(file, tmp_path)
    assert found.keys() == {TID}
    wait = found[TID]
    assert (wait.lock, wait.kind, wait.seq, wait.holds) == (3, Kind.MUTEX, 2, False)
    assert wait.duration_s == pytest.approx(10, abs=5)
    assert wait.idle is True


def test_a_waiter_that_holds_a_lock_says_so(tmp_path: Path) -> None:
    file, block = file_with_wait(site=6)
    file.hold(block, 1, MUTEX)
    assert poll(file, tmp_path)[TID].holds
    assert poll(file, tmp_path)[TID].idle is None


def test_a_thread_that_ends_may_still_wait(tmp_path: Path) -> None:
    file, block = file_with_wait()
    block.state = lib.LT_THREAD_EXITING
    assert TID in poll(file, tmp_path)


def _half_written(block: Any) -> None:
    block.wait.seq = 3


def _over(block: Any) -> None:
    block.wait.key = 0


def _unknown_kind(block: Any) -> None:
    block.wait.key = key(99, 0x1000)


def _dead(block: Any) -> None:
    block.state = lib.LT_THREAD_RETIRING


def _not_begun(block: Any) -> None:
    block.tid = 0


@pytest.mark.parametrize("change", [_half_written, _over, _unknown_kind, _dead, _not_begun])
def test_other_blocks_have_no_wait(tmp_path: Path, change: Callable[[Any], None]) -> None:
    file, block = file_with_wait()
    change(block)
    assert poll(file, tmp_path) == {}


@pytest.mark.parametrize("serials", [(5, 6), (6, 5)])
def test_the_newest_block_of_a_tid_counts(tmp_path: Path, serials: tuple[int, int]) -> None:
    file = SharedFile()
    for birth in serials:
        file.wait(file.add_thread(TID, birth=birth), birth, MUTEX)
    assert poll(file, tmp_path)[TID].lock == 6
