"""Reads of a shared file: each one lies within the file, and arrays within their chunks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.shared_file import SharedFile

from locktop.collector.errors import LocktopError
from locktop.collector.native import ffi, lib
from locktop.collector.shm import layout
from locktop.collector.shm.segment import GrowingArray, SharedMemory

SIZE = 1000


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[SharedMemory]:
    """A file of SIZE bytes, each with the lowest byte of its offset."""
    path = tmp_path / "file"
    path.write_bytes(bytes(at & 0xFF for at in range(SIZE)))
    memory = SharedMemory(os.open(path, os.O_RDWR), str(path))
    yield memory
    memory.close()


def test_bytes_are_read_where_they_lie(memory: SharedMemory) -> None:
    assert memory.read(5, 3) == bytes([5, 6, 7])
    assert memory.read(SIZE - 2, 2) == bytes([(SIZE - 2) & 0xFF, (SIZE - 1) & 0xFF])
    target = bytearray(4)
    memory.read_into(memoryview(target), 10)
    assert target == bytes([10, 11, 12, 13])


@pytest.mark.parametrize(("offset", "size"), [(-1, 2), (SIZE - 1, 2), (SIZE + 5, 0)])
def test_no_read_leaves_the_file(memory: SharedMemory, offset: int, size: int) -> None:
    with pytest.raises(LocktopError, match="lie outside"):
        memory.read(offset, size)
    with pytest.raises(LocktopError, match="lie outside"):
        memory.read_into(memoryview(bytearray(size)), offset)


def test_a_read_has_no_more_bytes_than_the_file_takes(memory: SharedMemory) -> None:
    memory.max_bytes = 10
    assert len(memory.read(0, 10)) == 10
    with pytest.raises(LocktopError, match="lie outside"):
        memory.read(0, 11)


def test_a_small_file_may_be_copied_whole(memory: SharedMemory) -> None:
    assert memory.max_bytes == 128 << 20
    os.truncate(memory.fd, 1 << 40)
    memory.refresh()
    assert (memory.size, memory.max_bytes) == (1 << 40, 128 << 20)


def test_a_file_that_was_cut_off_since_is_an_error(memory: SharedMemory) -> None:
    os.truncate(memory.fd, 100)
    with pytest.raises(LocktopError, match="cut off while being read"):
        memory.read(90, 20)
    with pytest.raises(LocktopError, match="cut off while being read"):
        memory.read_into(memoryview(bytearray(20)), 90)
    memory.refresh()
    assert memory.size == 100


def test_a_copy_in_parts_is_complete(memory: SharedMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.preadv
    monkeypatch.setattr(os, "preadv", lambda fd, to, at: real(fd, [to[0][:3]], at))
    target = bytearray(8)
    memory.read_into(memoryview(target), 20)
    assert target == bytes(range(20, 28))


def test_the_name_of_a_file_may_be_gone(memory: SharedMemory) -> None:
    assert not memory.is_unlinked()
    os.unlink(memory.path)
    assert memory.is_unlinked()


def test_two_descriptors_may_have_one_file(memory: SharedMemory, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"x")
    same = SharedMemory(os.open(memory.path, os.O_RDONLY), "same")
    different = SharedMemory(os.open(other, os.O_RDONLY), "different")
    assert same.same_file(memory)
    assert not different.same_file(memory)
    descriptor = same.fd
    same.close()
    same.close()  # a second close does nothing
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    different.close()


# ---- arrays ----


class Threads:
    """A file of five threads in two chunks, as an array."""

    def __init__(self, directory: Path) -> None:
        self.file = SharedFile()
        for tid in range(1, 6):
            self.file.add_thread(tid)
        self.path = self.file.save(directory)
        self.memory = SharedMemory(os.open(self.path, os.O_RDWR), str(self.path))
        self.array = GrowingArray(self.memory, layout.THREADS_AT, layout.THREAD.size)

    def refresh(self) -> None:
        os.pwrite(self.memory.fd, self.file.data, 0)
        self.memory.refresh()
        self.array.refresh()

    def tids(self) -> list[int]:
        self.refresh()
        copied = self.array.copy()
        assert len(copied) == self.array.count * layout.THREAD.size
        return [layout.THREAD.unpack(copied, at).tid
                for at in range(0, len(copied), layout.THREAD.size)]  # fmt: skip


@pytest.fixture
def threads(tmp_path: Path) -> Iterator[Threads]:
    threads = Threads(tmp_path)
    yield threads
    threads.memory.close()


def test_the_elements_of_all_chunks_are_copied_in_order(threads: Threads) -> None:
    assert threads.tids() == [1, 2, 3, 4, 5]
    assert list(threads.array.offsets()) == [
        threads.file.offset_of(block) for block in threads.file.blocks
    ]


def test_an_array_that_grows_is_read_to_its_new_end(threads: Threads) -> None:
    threads.tids()
    for tid in range(6, 14):
        threads.file.add_thread(tid)
        assert threads.tids() == list(range(1, tid + 1))
    assert len(threads.array.data) >= 13 * layout.THREAD.size


def test_the_buffer_of_an_array_is_used_again(threads: Threads) -> None:
    threads.tids()
    before = threads.array.data
    assert len(before) == 5 * layout.THREAD.size
    threads.tids()
    assert threads.array.data is before
    threads.file.add_thread(6)
    threads.tids()
    assert len(threads.array.data) == 5 * layout.THREAD.size * 3 // 2
    before = threads.array.data
    threads.file.add_thread(7)
    threads.tids()
    assert threads.array.data is before


def test_an_array_without_elements_is_empty(tmp_path: Path) -> None:
    file = SharedFile()
    path = file.save(tmp_path)
    memory = SharedMemory(os.open(path, os.O_RDONLY), str(path))
    array = GrowingArray(memory, layout.THREADS_AT, layout.THREAD.size)
    array.refresh()
    assert (len(array.copy()), list(array.offsets())) == (0, [])
    memory.close()


def _other_size(head: Any) -> None:
    head.element_size += 8


def _no_first_chunk(head: Any) -> None:
    head.first = 0


def _huge_first_chunk(head: Any) -> None:
    head.first = (1 << 20) + 1


def _unaligned_chunk(head: Any) -> None:
    head.chunk[0] += 4


def _missing_chunk(head: Any) -> None:
    head.chunk[1] = 0


@pytest.mark.parametrize(
    "damage", [_other_size, _no_first_chunk, _huge_first_chunk, _unaligned_chunk, _missing_chunk]
)
def test_a_damaged_array_is_an_error(threads: Threads, damage: Callable[[Any], None]) -> None:
    damage(threads.file.header.threads)
    with pytest.raises(LocktopError, match="an array"):
        threads.refresh()


def test_the_largest_first_chunk_is_allowed(threads: Threads) -> None:
    threads.file.header.threads.first = 1 << 20
    threads.refresh()
    assert threads.array.count == 5


def test_an_array_counts_no_more_elements_than_the_file_has_room_for(threads: Threads) -> None:
    threads.memory.max_bytes = 5 * layout.THREAD.size
    threads.array.refresh()
    threads.memory.max_bytes -= 1
    with pytest.raises(LocktopError, match="5 elements in an array"):
        threads.array.refresh()


def test_an_array_counts_no_more_elements_than_its_chunks_have(threads: Threads) -> None:
    head = threads.file.header.threads
    head.first, head.count = 1, 1 << lib.LT_CHUNKS
    for number in range(lib.LT_CHUNKS):
        head.chunk[number] = head.chunk[0]
    os.pwrite(threads.memory.fd, threads.file.data, 0)
    threads.memory.max_bytes = 1 << 62
    with pytest.raises(LocktopError, match="counts more than its chunks hold"):
        threads.array.refresh()


def test_the_scalars_of_a_file_are_read_at_each_call(threads: Threads) -> None:
    file = threads.file
    file.header.retire_seq, file.header.unloads = 7, 3
    file.control.mode = 5 << 8
    threads.refresh()
    assert threads.memory.retire_seq() == 7
    assert threads.memory.header().unloads == 3
    assert threads.memory.control().mode == 5 << 8
    assert ffi.sizeof("struct lt_header") == threads.memory.header().header_size
