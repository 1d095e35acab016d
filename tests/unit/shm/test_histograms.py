"""Histograms of a file: the lines of all threads, and of those that ended."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from support.shared_file import LineCount, SharedFile, key

from locktop.collector.model import PackedHistogram
from locktop.collector.native import lib
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.histograms import FIRST_LINES, HOLDS, WAITS
from locktop.collector.shm.reader import Reader, Reading
from locktop.collector.shm.segment import SharedMemory

MUTEX, SEM = lib.LT_KIND_MUTEX, lib.LT_KIND_SEM
CARRY: int = lib.LT_LINE_CARRY
LOCK = 1
MANY = 1 << 14  # lines of a thread, of which a reading may leave out those of the next one


class Scans:
    """A file with one mutex of the id LOCK, and a reader of the file."""

    def __init__(self, directory: Path) -> None:
        self.file = SharedFile(size=1 << 22)
        assert self.file.add_lock(MUTEX, 0x1000) == LOCK
        self.path = self.file.save(directory)
        self.memory = SharedMemory(os.open(self.path, os.O_RDONLY), str(self.path))
        self.reader = Reader(self.memory, Clock(self.memory.header()))

    def read(self, all_lines: bool = True) -> Reading:
        self.path.write_bytes(self.file.data)
        return self.reader.read(all_lines=all_lines)

    def add(
        self, *counts: LineCount, contended: int = 0, large: bool = False, capacity: int = 16
    ) -> None:
        """Add a thread with these counts, and with waits for the mutex."""
        block = self.file.add_thread(11 + len(self.file.blocks))
        of_lock = {"key": key(MUTEX, 0x1000), "lock": LOCK, "contended": contended}
        self.file.give_slots(block, 2, [of_lock | {"acquisitions": max(contended, 1)}])
        self.file.give_lines(block, capacity, counts)
        if large:
            self.file.make_room_for_held(block, 40)
            for _ in range(40):
                self.file.hold(block, LOCK, key(MUTEX, 0x1000))


def counts(packed: bytes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the numbers of the buckets, and the counts."""
    histogram = PackedHistogram(packed, 1.0)
    return histogram.buckets, histogram.counts


@pytest.fixture
def scans(tmp_path: Path) -> Scans:
    return Scans(tmp_path)


def test_a_lock_has_the_counts_of_all_threads(scans: Scans) -> None:
    scans.add(LineCount(LOCK, 60, 2), LineCount(LOCK, 75, 1), LineCount(LOCK, 61, 9, HOLDS))
    scans.add(LineCount(LOCK, 60, 3), LineCount(LOCK, 251, 1), LineCount(LOCK, 0, 4))
    reading = scans.read()
    (row,) = reading.rows
    assert (row.wait_counted, row.hold_counted) == (11, 9)
    assert counts(reading.lines.packed_histogram(LOCK, WAITS)) == ((0, 60, 75, 251), (4, 5, 1, 1))
    assert counts(reading.lines.packed_histogram(LOCK, HOLDS)) == ((61,), (9,))


def test_a_lock_has_the_counts_of_ended_threads(scans: Scans) -> None:
    scans.add(LineCount(LOCK, 60, 2))
    scans.file.add_ended_line(LineCount(LOCK, 60, 5))
    scans.file.add_ended_line(LineCount(LOCK, 99, 1))
    scans.file.add_ended_line(LineCount(LOCK, 99, 7, HOLDS))
    lines = scans.read().lines
    assert counts(lines.packed_histogram(LOCK, WAITS)) == ((60, 99), (7, 1))
    assert counts(lines.packed_histogram(LOCK, HOLDS)) == ((99,), (7,))


def test_a_large_count_has_a_second_line(scans: Scans) -> None:
    scans.add(LineCount(LOCK, 60, 5), LineCount(LOCK, 60, 3, WAITS | CARRY))
    assert counts(scans.read().lines.packed_histogram(LOCK, WAITS)) == ((60,), (5 + (3 << 31),))


@pytest.mark.parametrize("is_large", [False, True])
def test_a_thread_has_its_waits_in_contention(scans: Scans, is_large: bool) -> None:
    semaphore = scans.file.add_lock(SEM, 0x2000)
    other = scans.file.add_lock(MUTEX, 0x3000)
    scans.add(
        LineCount(LOCK, 60, 2), LineCount(LOCK, 60, 8, HOLDS), LineCount(other, 60, 1),
        LineCount(other, 99, 200), LineCount(semaphore, 60, 4, kind=SEM),
        contended=203, large=is_large,
    )  # fmt: skip
    scans.add()
    one, none = scans.read().threads
    assert counts(one.wait_lengths) == ((60, 99), (3, 200))
    assert one.waits_left_out == none.waits_left_out == 0
    assert none.wait_lengths == b""


def test_waits_that_found_no_room_are_counted(scans: Scans) -> None:
    scans.add(LineCount(LOCK, 60, 2), contended=5)
    scans.add(LineCount(LOCK, 60, 4), contended=4)
    scans.file.blocks[0].histograms.left_out = 7
    scans.file.header.lines_left_out = 10
    reading = scans.read()
    assert reading.lines_left_out == 17
    assert [thread.waits_left_out for thread in reading.threads] == [3, 0]


def test_a_thread_whose_counts_changed_is_read_again(scans: Scans) -> None:
    """The counts are copied before the contended acquisitions, and may lack the last ones."""
    scans.add(LineCount(LOCK, 60, 2), contended=3)
    assert counts(scans.read().threads[0].wait_lengths) == ((60,), (2,))
    line = scans.file.struct_at("struct lt_histogram_line", scans.file.blocks[0].histograms.lines)
    line.counts[60 % lib.LT_LINE_BUCKETS] = 3
    reading = scans.read()
    assert counts(reading.threads[0].wait_lengths) == ((60,), (3,))
    assert reading.rows[0].wait_counted == 3


def set_count(scans: Scans, count: int) -> None:
    """Set the only count of the first thread, and its contended acquisitions."""
    block = scans.file.blocks[0]
    line = scans.file.struct_at("struct lt_histogram_line", block.histograms.lines)
    line.counts[60 % lib.LT_LINE_BUCKETS] = count
    scans.file.struct_at("struct lt_waits", block.waits.chunk[0]).contended = count


@pytest.mark.parametrize("is_large", [False, True])
def test_many_lines_may_be_of_an_earlier_reading(
    scans: Scans, is_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    scans.add(LineCount(LOCK, 60, 2), contended=2, large=is_large, capacity=MANY)
    scans.read(all_lines=False)
    set_count(scans, 3)
    reading = scans.read(all_lines=False)
    assert (reading.rows[0].contended, reading.threads[0].contended) == (3, 3)
    assert counts(reading.threads[0].wait_lengths) == ((60,), (2,))
    assert reading.rows[0].wait_counted == 2
    assert counts(reading.lines.packed_histogram(LOCK, WAITS)) == ((60,), (2,))
    now_s += 2
    reading = scans.read(all_lines=False)
    assert counts(reading.threads[0].wait_lengths) == ((60,), (3,))
    assert reading.rows[0].wait_counted == 3
    set_count(scans, 4)
    assert counts(scans.read().lines.packed_histogram(LOCK, WAITS)) == ((60,), (4,))


def test_a_lock_that_is_newer_than_the_lines_has_none(scans: Scans) -> None:
    scans.add(LineCount(LOCK, 60, 2), contended=2, capacity=MANY)
    scans.read()
    lock = scans.file.add_lock(MUTEX, 0x9000)
    scans.add(LineCount(lock, 60, 1))
    reading = scans.read(all_lines=False)
    assert reading.lines.packed_histogram(lock, WAITS) == b""
    assert counts(scans.read().lines.packed_histogram(lock, WAITS)) == ((60,), (1,))


@pytest.mark.parametrize("is_large", [False, True])
def test_a_new_thread_does_not_get_the_lines_of_the_one_before(
    scans: Scans, is_large: bool
) -> None:
    scans.add(LineCount(LOCK, 60, 2), contended=2, large=is_large, capacity=MANY)
    scans.read()
    scans.file.blocks[0].birth += 1
    assert scans.read(all_lines=False).threads[0].wait_lengths == b""
    assert scans.read(all_lines=False).threads[0].wait_lengths == b""
    assert counts(scans.read().threads[0].wait_lengths) == ((60,), (2,))


def test_few_lines_are_always_read(scans: Scans) -> None:
    scans.add(LineCount(LOCK, 60, 2), contended=2)
    scans.read()
    set_count(scans, 3)
    assert counts(scans.read(all_lines=False).threads[0].wait_lengths) == ((60,), (3,))


def test_many_lines_find_room(scans: Scans) -> None:
    count = FIRST_LINES * 2
    locks = [scans.file.add_lock(MUTEX, 0x10000 + 64 * number) for number in range(count)]
    block = scans.file.add_thread(11)
    lines = [LineCount(lock, 60, 1 + lock % 5) for lock in locks]
    scans.file.give_lines(block, count, lines)
    for lock in locks:
        scans.file.add_ended_line(LineCount(lock, 61, 1))
    for _ in range(2):
        found = scans.read().lines
        assert all(
            counts(found.packed_histogram(lock, WAITS)) == ((60, 61), (1 + lock % 5, 1))
            for lock in locks
        )


@pytest.mark.parametrize(
    "damage",
    [
        1 << lib.LT_LINE_PART_SHIFT + 2,
        1 << lib.LT_LINE_NUMBER_SHIFT + 5,
        1 << lib.LT_LINE_KIND_SHIFT + 5,
        1 << 31,
    ],
)
@pytest.mark.parametrize("has_ended", [False, True])
def test_a_damaged_line_is_left_out(scans: Scans, damage: int, has_ended: bool) -> None:
    damaged, whole = LineCount(LOCK, 60, 2), LineCount(LOCK, 80, 3)
    if has_ended:
        scans.file.add_ended_line(damaged)
        scans.file.add_ended_line(whole)
        at = scans.file.header.retired_lines.chunk[0]
        scans.file.struct_at("struct lt_line_sum", at).key |= damage
    else:
        scans.add(damaged, whole)
        at = scans.file.blocks[0].histograms.lines
        scans.file.struct_at("struct lt_histogram_line", at).key |= damage
    reading = scans.read()
    assert counts(reading.lines.packed_histogram(LOCK, WAITS)) == ((80,), (3,))
    assert reading.notes == ["some of a thread's figures were damaged"]
