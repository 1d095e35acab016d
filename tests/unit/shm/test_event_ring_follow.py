"""The flight recorder follows rings: limits, wraps, damage and a writer that runs ahead."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support.shared_file import SharedFile, mark, record

from locktop.collector.errors import LocktopError
from locktop.collector.native import offset_of
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.event_ring import FlightRecorder, RawEvent, end
from locktop.collector.shm.reader import Reader
from locktop.collector.shm.segment import SharedMemory

RING_HEAD = offset_of("struct lt_thread", "ring_head")


class Rings:
    """A file with rings, and the recorder of the file.

    The heads of all rings move on by ``ahead`` after the threads were read.
    """

    ahead = 0

    def __init__(self, directory: Path, keep: int = 10_000) -> None:
        self.file = SharedFile()
        self.path = self.file.save(directory)
        self.memory = SharedMemory(os.open(self.path, os.O_RDONLY), str(self.path))
        self.reader = Reader(self.memory, Clock(self.memory.header()))
        self.recorder = FlightRecorder(self.memory, keep)

    def add(self, tid: int, capacity: int, records: list[bytes]) -> Any:
        block = self.file.add_thread(tid)
        self.file.give_ring(block, capacity, records)
        return block

    def read(self, budget_s: float = 100.0) -> list[int]:
        """Return the numbers of all records that are kept, in order."""
        self.path.write_bytes(self.file.data)
        self.memory.refresh()
        threads = list(self.reader.read_threads().values())
        with self.path.open("r+b") as file:
            for thread in threads:
                at = thread.offset + RING_HEAD
                head = int.from_bytes(self.file.data[at : at + 8], "little")
                file.seek(at)
                file.write((head + self.ahead).to_bytes(8, "little"))
        self.recorder.read(self.reader.rings, budget_s)
        return sorted(event.start for event in self.recorder.newest)


@pytest.fixture
def rings(tmp_path: Path) -> Rings:
    return Rings(tmp_path)


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [record(tid=1, start=number) for number in range(first, first + count)]


def test_the_threads_with_new_records_share_the_work_of_a_scan(rings: Rings) -> None:
    rings.add(11, 16, [])
    for number, tid in enumerate((12, 13)):
        rings.add(tid, 4200, numbered(4150, 10_000 * number))
    found = rings.read()
    assert found == [*range(54, 4150), *range(10_054, 14_150)]
    assert rings.recorder.lost == 2 * 54


def test_one_thread_alone_has_all_of_the_work(rings: Rings) -> None:
    rings.add(11, 8300, numbered(8250))
    assert len(rings.read()) == 8192
    assert rings.recorder.lost == 8250 - 8192


def test_records_across_the_end_are_read_in_both_parts(rings: Rings) -> None:
    block = rings.add(11, 8, numbered(6))
    assert rings.read() == list(range(6))
    rings.file.give_ring(block, 8, numbered(10))
    assert rings.read() == list(range(10))
    assert rings.recorder.lost == 0


def test_a_record_that_the_writer_may_be_at_work_on_is_lost(rings: Rings) -> None:
    rings.add(11, 16, numbered(15))
    rings.ahead = 5
    assert rings.read() == list(range(5, 15))
    assert rings.recorder.lost == 5


def test_a_writer_that_overtook_the_reader_leaves_nothing(rings: Rings) -> None:
    rings.add(11, 16, numbered(15))
    rings.ahead = 100
    assert rings.read() == []
    assert rings.recorder.lost == 15


def test_a_full_ring_has_one_slot_that_cannot_be_trusted(rings: Rings) -> None:
    rings.add(11, 16, numbered(16))
    assert rings.read() == list(range(1, 16))
    assert rings.recorder.lost == 1


@pytest.mark.parametrize("capacity", [(1 << 20) + 1, 1 << 31])
def test_a_ring_larger_than_any_is_damage(rings: Rings, capacity: int) -> None:
    rings.add(11, 16, numbered(3)).ring_capacity = capacity
    with pytest.raises(LocktopError, match=f"a ring of {capacity} records"):
        rings.read()


def test_a_ring_of_the_largest_size_is_none_that_is_damaged(rings: Rings) -> None:
    rings.add(11, 16, numbered(3)).ring_capacity = 1 << 20
    assert rings.read() == [0, 1, 2]


def test_a_thread_without_a_ring_loses_its_records(rings: Rings) -> None:
    block = rings.add(11, 16, numbered(3))
    block.ring = 0
    assert rings.read() == []
    assert rings.recorder.lost == 3


def test_a_new_ring_in_the_block_is_followed_from_its_head(rings: Rings) -> None:
    block = rings.add(11, 16, numbered(9))
    rings.read()
    rings.file.give_ring(block, 16, numbered(4, 100))
    assert rings.read() == list(range(9))
    assert rings.recorder.lost == 0
    rings.file.give_ring(block, 16, numbered(6, 100))
    assert rings.read() == [*range(9), 104, 105]


def test_a_damaged_record_or_mark_is_lost(rings: Rings) -> None:
    bad_mark = bytearray(mark(1, 5, b"x"))
    bad_mark[2] = 0
    rings.add(11, 16, [*numbered(2), b"\xc1" * 64, bytes(bad_mark), mark(1, 7, b"y")])
    assert rings.read() == [0, 1]
    assert [one.text for one in rings.recorder.marks] == [b"y"]
    assert rings.recorder.lost == 2


def test_the_newest_marks_are_kept(rings: Rings) -> None:
    block = rings.add(11, 200, [mark(1, number, b"m") for number in range(60)])
    rings.read()
    rings.file.give_ring(block, 200, [mark(1, number, b"m") for number in range(130)])
    rings.read()
    assert [one.start for one in rings.recorder.marks] == list(range(129, 29, -1))


def test_the_events_that_ended_last_are_kept(tmp_path: Path) -> None:
    rings = Rings(tmp_path, keep=2)
    rings.add(11, 16, [
        record(start=1, wait=50), record(start=10, wait=5, hold=100), record(start=30), record(),
    ])  # fmt: skip
    rings.read()
    assert [end(event) for event in rings.recorder.newest] == [115, 51]


def test_an_event_ends_after_its_wait_and_its_hold() -> None:
    event = RawEvent(1, 1, 1, 1, 0, 0, start=10, wait=5, hold=3, site=0)
    assert end(event) == 18


def test_the_largest_kind_of_a_record_is_a_short_number(rings: Rings) -> None:
    rings.add(11, 16, [record(kind=0x7F, start=1), record(kind=0x80, start=2)])
    assert rings.read() == [1]
