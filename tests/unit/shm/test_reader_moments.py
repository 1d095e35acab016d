"""Readings of a thread that goes on meanwhile."""

from __future__ import annotations

import mmap
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support.shared_file import SharedFile, key

from locktop.collector.native import ffi, lib
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.reader import Reader
from locktop.collector.shm.segment import SharedMemory

_MUTEX = key(lib.LT_KIND_MUTEX, 0x1000)
_TID = 7
_HELD_SIZE = ffi.sizeof("struct lt_held")
#: Waits that a test must see, and readings that it makes at most.
_WAITS, _READINGS = 200, 1_000_000


class Changing:
    """A thread that waits for a lock, takes it and releases it, again and again."""

    def __init__(self, block: Any, others: int) -> None:
        """Args:
        block: of the thread, which waits and holds ``others`` locks. The entry of the lock lies
            behind these.
        """
        self._block = block
        self._others = others
        self._stop = threading.Event()
        self._writer = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        self._writer.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._writer.join()

    def _run(self) -> None:
        block, wait = self._block, self._block.wait
        without, with_lock = self._others * _HELD_SIZE, (self._others + 1) * _HELD_SIZE
        while not self._stop.is_set():
            wait.seq += 1
            wait.key = 0
            wait.seq += 1
            block.held_top = with_lock
            time.sleep(0)
            block.held_top = without
            wait.seq += 1
            wait.key = _MUTEX
            wait.seq += 1
            time.sleep(0)


@pytest.mark.parametrize("others", [0, 40])  # more locks than the block has room for
def test_a_wait_and_a_held_list_come_from_one_moment(tmp_path: Path, others: int) -> None:
    file = SharedFile()
    lock = file.add_lock(lib.LT_KIND_MUTEX, 0x1000)
    thread = file.add_thread(_TID)
    file.make_room_for_held(thread, others + 1)
    for n in range(others):
        address = 0x10000 + 64 * n
        file.hold(thread, file.add_lock(1, address), key(lib.LT_KIND_MUTEX, address))
    file.hold(thread, lock, _MUTEX)
    thread.held_top -= _HELD_SIZE
    file.wait(thread, lock, _MUTEX, since=1)
    path = file.save(tmp_path)
    with path.open("r+b") as opened:
        shared = mmap.mmap(opened.fileno(), 0)
    bytes_ = ffi.from_buffer(shared, require_writable=True)
    block = ffi.cast("struct lt_thread *", bytes_ + file.offset_of(thread))[0]
    memory = SharedMemory(os.open(path, os.O_RDONLY), str(path))
    reader, waits = Reader(memory, Clock(memory.header())), 0
    with Changing(block, others):
        for _ in range(_READINGS):
            found = reader.read_threads()[_TID]
            if found.wait is not None:
                waits += 1
                assert lock not in [entry.lock for entry in found.held]
                assert len(found.held) == others
            if waits == _WAITS:
                break
    memory.close()
    assert waits == _WAITS, "without waits this test proves nothing"
