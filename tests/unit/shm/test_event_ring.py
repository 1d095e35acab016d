"""Records of the ring: sound ones, damaged ones, and a writer that runs ahead."""

from __future__ import annotations

import heapq
import os
import random
import time
from itertools import count
from pathlib import Path

import msgspec
import pytest
from support.shared_file import SharedFile, mark, record

from locktop.collector.errors import LocktopError
from locktop.collector.model import CONTENTION_KINDS, Kind
from locktop.collector.native import Record, ffi, lib
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.event_ring import (
    FlightRecorder,
    RawEvent,
    RawMark,
    count_holds,
    decode,
    decode_marks,
    decode_newest,
    end,
    long_waits,
    split,
)
from locktop.collector.shm.kinds import KINDS
from locktop.collector.shm.layout import THREAD
from locktop.collector.shm.reader import Reader
from locktop.collector.shm.segment import SharedMemory


def test_every_field_of_a_record_is_decoded() -> None:
    one = record(
        type=lib.LT_RECORD_TIMEOUT, kind=2, tid=3, lock=4, stack=5, holder=6,
        start=2**63, wait=2**64 - 1, hold=9, site=10,
    )  # fmt: skip
    expected = RawEvent(
        type=lib.LT_RECORD_TIMEOUT, kind=2, tid=3, lock=4, stack=5, holder=6,
        start=2**63, wait=2**64 - 1, hold=9, site=10,
    )  # fmt: skip
    assert decode(one) == ([expected], 0)


def test_a_damaged_record_costs_only_itself() -> None:
    good = record(tid=1)
    for bad in (b"\0" * 64, b"\xff" * 64, b"\x9b" * 64, good[:40] + good[:24], b"\xc1" * 64):
        events, damaged = decode(good + bad + good + good)
        assert ([event.tid for event in events], damaged) == ([1, 1, 1], 1)


def test_holds_are_counted_by_lock_and_length() -> None:
    held = [record(lock=7, hold=2**40), record(lock=7, hold=3), record(lock=2**31, hold=3)]
    data = b"".join([*held, record(lock=7, hold=3), record(lock=7, hold=0), b"\xff" * 64])
    assert count_holds(data) == {(7, 2**40): 1, (7, 3): 2, (2**31, 3): 1}
    decoded = [(event.lock, event.hold) for event in decode(data)[0] if event.hold]
    assert sorted(count_holds(data).elements()) == sorted(decoded)
    assert count_holds(b"") == {}


def test_wakes_of_a_futex_are_no_holds_to_count() -> None:
    wake = record(type=lib.LT_RECORD_RELEASE, lock=7, hold=3)
    assert count_holds(wake + record(lock=7, hold=3)) == {(7, 3): 1}


def test_noise_raises_nothing_and_yields_only_valid_records() -> None:
    chance = random.Random(1)
    for _ in range(2000):
        data = bytearray(record(tid=1, lock=2) * 4)
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        events, damaged = decode(bytes(data))
        assert len(events) + damaged == 4
        values = [value for event in events for value in msgspec.structs.astuple(event)]
        assert all(type(value) is int and 0 <= value < 2**64 for value in values)


@pytest.mark.parametrize("least", [1, 255, 256, 2**24 + 5, 2**32, 2**40 + 2**8, 2**64 - 1])
def test_long_waits_are_found_among_all(least: int) -> None:
    chance = random.Random(least)
    waits = [chance.randrange(2 ** chance.randint(1, 64)) for _ in range(500)]
    waits += [0, least - 1, least, min(least + 1, 2**64 - 1)]
    found = decode(long_waits(b"".join([record(wait=wait) for wait in waits]), least))[0]
    assert [one.wait for one in found] == [wait for wait in waits if wait >= least]


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.FUTEX])
def test_long_waits_for_locks_with_holders_go_first(kind: Kind) -> None:
    number = next(number for number, one in KINDS.items() if one is kind)
    futexes = record(kind=lib.LT_KIND_FUTEX, wait=9) * 5
    found = ffi.new("uint8_t[]", 3 * 64)
    data = futexes + record(kind=number, wait=9, tid=7) + record(kind=number, wait=8) + futexes
    assert lib.lt_long_waits(ffi.from_buffer(data), len(data) // 64, 9, found, 3) == 3
    is_found = 7 in [one.tid for one in decode(ffi.buffer(found)[:])[0]]
    assert is_found == (kind in CONTENTION_KINDS)
    # Records beyond the room are left out, the last ones first.
    contended = [record(kind=lib.LT_KIND_MUTEX, wait=9, tid=tid) for tid in range(5)]
    data = futexes + b"".join(contended)
    assert lib.lt_long_waits(ffi.from_buffer(data), len(data) // 64, 9, found, 3) == 3
    assert [one.tid for one in decode(ffi.buffer(found)[:])[0]] == [0, 1, 2]


def test_marks_and_waits_have_different_types() -> None:
    one, two = mark(7, 2**40, b"reload begins"), mark(8, 2**41, b"x" * 44)
    rest, marks = split(record(tid=1) + one + record(tid=2) + two)
    assert [event.tid for event in decode(rest)[0]] == [1, 2]
    expected = [RawMark(7, 2**40, b"reload begins"), RawMark(8, 2**41, b"x" * 44)]
    assert decode_marks(marks) == (expected, 0)


def test_a_damaged_mark_costs_only_itself() -> None:
    chance = random.Random(2)
    good = mark(1, 2, b"good")
    for _ in range(2000):
        data = bytearray(mark(1, 2, b"text"))
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(1, len(data))] = chance.randrange(256)
        marks, damaged = decode_marks(good + bytes(data) + good)
        assert len(marks) + damaged == 3
        assert marks[0] == marks[-1] == RawMark(1, 2, b"good")


class Ring:
    """The ring of one thread in a file, and a reader of the ring."""

    def __init__(self, directory: Path, capacity: int) -> None:
        self.file = SharedFile()
        self.block = self.file.add_thread(os.getpid())
        self.capacity = capacity
        self.file.give_ring(self.block, capacity, [])
        self.file.give_long_waits(self.block)
        path = self.file.save(directory)
        self.memory = SharedMemory(os.open(path, os.O_RDWR), str(path))
        self.reader = Reader(self.memory, Clock(self.memory.header()))
        self.recorder = FlightRecorder(self.memory)
        self.written = self.noted = 0

    def write(self, count: int) -> None:
        for number in range(self.written, self.written + count):
            at = self.block.ring + number % self.capacity * lib.LT_RECORD_SIZE
            os.pwrite(self.memory.fd, record(tid=1, start=number), at)
        self.written += count
        head = self.file.offset_of(self.block) + _offset(THREAD, "ring_head")
        os.pwrite(self.memory.fd, self.written.to_bytes(8, "little"), head)

    def note_long(self, *numbers: int, at: int = 0) -> None:
        """Write long waits at entry ``at`` and behind; each was a record of that number."""
        size = ffi.sizeof("struct lt_long_wait")
        for index, number in enumerate(numbers, at):
            entry = ffi.new("struct lt_long_wait *", {"number": number + 1})
            entry.record[0 : lib.LT_RECORD_SIZE] = list(record(tid=1, start=number))
            os.pwrite(self.memory.fd, ffi.buffer(entry)[:], self.block.long_waits + index * size)
        self.noted += len(numbers)
        head = self.file.offset_of(self.block) + _offset(THREAD, "long_waits_noted")
        os.pwrite(self.memory.fd, self.noted.to_bytes(8, "little"), head)

    def read(self, budget_s: float = 10.0) -> list[int]:
        self.reader.read_threads()
        self.recorder.read(self.reader.rings, budget_s)
        return sorted(event.start for event in self.recorder.newest)


def _offset(_: Record[object], field: str) -> int:  # type: ignore[type-var]
    from locktop.collector.native import offset_of

    return offset_of("struct lt_thread", field)


def test_each_record_is_read_once(tmp_path: Path) -> None:
    ring = Ring(tmp_path, 16)
    ring.write(5)
    assert ring.read() == [0, 1, 2, 3, 4]
    assert ring.read() == [0, 1, 2, 3, 4]
    ring.write(14)
    assert ring.read() == list(range(19))
    assert ring.recorder.lost == 0


def test_overwritten_records_are_counted_as_lost(tmp_path: Path) -> None:
    ring = Ring(tmp_path, 16)
    ring.write(5)
    ring.read()
    ring.write(40)
    # The next slot may be half written: 15 of 16 slots can be trusted.
    assert ring.read() == [*range(5), *range(30, 45)]
    assert ring.recorder.lost == 25


def test_a_reader_without_time_reads_and_loses_nothing(tmp_path: Path) -> None:
    ring = Ring(tmp_path, 16)
    ring.write(5)
    assert ring.read(budget_s=-1.0) == []
    assert ring.recorder.lost == 0
    assert ring.read() == [0, 1, 2, 3, 4]


def test_every_record_is_read_on_a_busy_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = Ring(tmp_path, 16)
    ring.write(5)
    hours = count(0.0, 3600.0)  # records pass while other processes run
    monkeypatch.setattr(time, "monotonic", lambda: next(hours))
    assert ring.read() == [0, 1, 2, 3, 4]


def test_the_newest_of_many_records_are_decoded() -> None:
    chance = random.Random(3)
    for _ in range(200):
        starts = chance.sample(range(10_000), chance.randrange(1, 400))
        data = b"".join(record(tid=1, start=at, wait=at % 7, hold=at % 3) for at in starts)
        if chance.random() < 0.3:
            data += b"\xff" * lib.LT_RECORD_SIZE
        keep = chance.choice((1, 2, 30, 300))
        everything, damaged = decode(data)
        newest = heapq.nlargest(keep, everything, key=end)
        found, also_damaged = decode_newest(data, keep)
        assert sorted(map(end, found)) == sorted(map(end, newest))
        assert found == [event for event in everything if event in found], "in the same order"
        assert damaged == also_damaged


def test_an_end_beyond_all_numbers_is_the_newest() -> None:
    data = b"".join(record(tid=tid, start=2**64 - tid, wait=2**63) for tid in (1, 2, 3))
    data += record(tid=4, start=5)
    found, _ = decode_newest(data, 3)
    assert [event.tid for event in found] == [1, 2, 3]


def test_the_rings_of_a_crowd_are_read_once(tmp_path: Path) -> None:
    file, chance = SharedFile(size=1 << 23), random.Random(4)
    written = set()
    for tid in range(1, 601):
        starts = [1000 * tid + number for number in range(chance.randrange(7))]
        file.give_ring(file.add_thread(tid), 8, [record(tid=tid, start=at) for at in starts])
        written.update(starts)
    path = file.save(tmp_path)
    memory = SharedMemory(os.open(path, os.O_RDWR), str(path))
    reader, recorder = Reader(memory, Clock(memory.header())), FlightRecorder(memory, keep=5000)
    for _ in range(2):
        reader.read_threads()
        recorder.read(reader.rings, budget_s=10.0)
        assert sorted(event.start for event in recorder.newest) == sorted(written)
    assert recorder.lost == 0
    memory.close()


def test_a_ring_beyond_the_end_of_the_file_is_an_error(tmp_path: Path) -> None:
    ring = Ring(tmp_path, 16)
    at = ring.file.offset_of(ring.block) + _offset(THREAD, "ring")
    os.pwrite(ring.memory.fd, (1 << 40).to_bytes(8, "little"), at)
    ring.write(3)
    with pytest.raises(LocktopError, match="outside"):
        ring.read()
