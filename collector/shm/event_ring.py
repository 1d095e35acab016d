"""The flight recorder: copies ring slots, drops overwritten records, decodes the rest."""

from __future__ import annotations

import heapq
import struct
import time
from collections import Counter
from typing import Any, NamedTuple

import msgspec

from locktop.collector.errors import LocktopError
from locktop.collector.native import ffi, lib
from locktop.collector.shm.segment import SharedMemory

SIZE: int = lib.LT_RECORD_SIZE
#: Records decoded in one scan. The threads with new records share this number.
_QUOTA = 8192
_MAX_MARKS = 100
#: Rings that are copied before the next look at the clock.
_RINGS_AT_ONCE = 256
_MARK_FIRST_BYTE = b"\x95"
#: A mark, and the bytes between its numbers; abi.h draws the mark.
_MARK = struct.Struct(f">3sI1sQ2s{lib.LT_MARK_TEXT}s2s")
_MARK_CONSTANTS = (
    bytes((0x95, lib.LT_RECORD_MARK, 0xCE)),
    b"\xcf",
    bytes((0xD9, lib.LT_MARK_TEXT)),
    b"\xc4\0",
)
#: The type, the lock and the hold of a record.
_HOLD = struct.Struct(">xB7xI29xQ14x")
#: The msgpack header of an array of up to 2^32 - 1 elements; a count of four bytes follows.
_ARRAY32 = b"\xdd"


class RawEvent(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One record of the ring; times in ticks.

    The msgpack array of a record has these fields in this order (abi.h), then padding.
    """

    type: int  # enum lt_record, without LT_RECORD_MARK
    kind: int  # enum lt_kind, with LT_KIND_SHARED
    tid: int
    lock: int
    stack: int
    holder: int
    start: int
    wait: int
    hold: int
    site: int


class RawMark(NamedTuple):
    """One mark of the user; the time in ticks."""

    tid: int
    start: int
    text: bytes


_SIGNALS = (lib.LT_RECORD_SIGNAL, lib.LT_RECORD_BROADCAST)
_RELEASE: int = lib.LT_RECORD_RELEASE
_new_uncleared = ffi.new_allocator(should_clear_after_alloc=False)
_EVENTS = msgspec.msgpack.Decoder(list[RawEvent])


def is_signal(event: RawEvent) -> bool:
    """Return whether the record is of a post, a signal or a broadcast."""
    return event.type in _SIGNALS


def is_release(event: RawEvent) -> bool:
    """Return whether the record is of a wake of waiters, by a thread that may have held a lock."""
    return event.type == _RELEASE


def end(event: RawEvent) -> int:
    """Return when the event was over, in ticks."""
    return event.start + event.wait + event.hold


def _mark_start(mark: RawMark) -> int:
    return mark.start


def decode(data: bytes) -> tuple[list[RawEvent], int]:
    """Return the records in ``data`` (a whole number of records) and how many were damaged."""
    sound, damaged = _sound(data)
    # The records are the elements of one array, so one call decodes all of them.
    count = len(sound) // SIZE
    return _EVENTS.decode(_ARRAY32 + count.to_bytes(4, "big") + sound), damaged


def decode_newest(data: bytes, keep: int) -> tuple[list[RawEvent], int]:
    """Return the ``keep`` records that ended last, in the order of ``data``; see decode()."""
    sound, damaged = _sound(data)
    if len(sound) > keep * SIZE:
        newest = ffi.new("struct lt_record_end[]", keep)
        lib.lt_newest_records(ffi.from_buffer(sound), len(sound) // SIZE, newest, keep)
        starts = sorted([SIZE * record.index for record in newest])
        sound = b"".join([sound[start : start + SIZE] for start in starts])
    return decode(sound)[0], damaged


def sound(data: bytes) -> bytes:
    """Return the sound records of ``data`` (a whole number of records)."""
    return _sound(data)[0]


def _sound(data: bytes) -> tuple[bytes, int]:
    """Return the sound records, and how many others there are."""
    if _are_sound(data):
        return data, 0
    records = [data[start : start + SIZE] for start in range(0, len(data), SIZE)]
    sound = [record for record in records if _are_sound(record)]
    return b"".join(sound), len(records) - len(sound)


def count_holds(data: bytes) -> Counter[tuple[int, int]]:
    """Return how often each lock was held for how long: by id and ticks, in a tenth of the time.

    Args:
        data: records that are no marks; a whole number of them.
    """
    by_type = Counter(_HOLD.iter_unpack(_sound(data)[0]))
    counts: Counter[tuple[int, int]] = Counter()
    for (type_, lock, hold), count in by_type.items():
        # Not the waits that hold nothing, the signals, and what may be no lock.
        if hold and type_ != _RELEASE:
            counts[lock, hold] += count
    return counts


def decode_marks(data: bytes) -> tuple[list[RawMark], int]:
    """Return the marks in ``data`` (a whole number of slots), and how many were damaged."""
    marks = [
        RawMark(tid=tid, start=start, text=text.rstrip(b"\0"))
        # Not by msgspec: the text of a mark is a msgpack string, and need not be UTF-8.
        for first, tid, second, start, third, text, fourth in _MARK.iter_unpack(data)
        if (first, second, third, fourth) == _MARK_CONSTANTS
    ]
    return marks, len(data) // SIZE - len(marks)


def long_waits(data: bytes, ticks: int) -> bytes:
    """Return the records that waited at least so many ticks, which may be a few of a million.

    Args:
        data: sound records and damaged ones; a whole number of them.
        ticks: at least 1.
    """
    picked = _new_uncleared("uint8_t[]", max(len(data), 1))
    source = ffi.from_buffer("uint8_t[]", data)
    count = lib.lt_long_waits(source, len(data) // SIZE, ticks, picked, len(data) // SIZE)
    return bytes(ffi.buffer(picked, count * SIZE))


def split(data: bytes) -> tuple[bytes, bytes]:
    """Return the records of ``data`` that are no marks, and the marks."""
    first_bytes = data[::SIZE]
    if _MARK_FIRST_BYTE not in first_bytes:
        return data, b""
    events: list[bytes] = []
    marks: list[bytes] = []
    for number, first_byte in enumerate(first_bytes):
        record = data[number * SIZE : (number + 1) * SIZE]
        (marks if first_byte == _MARK_FIRST_BYTE[0] else events).append(record)
    return b"".join(events), b"".join(marks)


def _are_sound(data: bytes) -> bool:
    count = len(data) // SIZE
    return bool(lib.lt_count_sound(ffi.from_buffer("uint8_t[]", data), count) == count)


class FlightRecorder:
    """Follows the rings of all threads of one file.

    ``lost`` counts records that were written but never decoded here. The target overwrote such a
    record before a scan could read it, possibly before the first scan. Or a scan passed over the
    record, because a scan has a limit of time and of records.
    """

    def __init__(self, memory: SharedMemory, keep: int = 300) -> None:
        self._memory = memory
        self._keep = keep
        self.newest: list[RawEvent] = []
        self.marks: list[RawMark] = []
        self.lost = 0

    def read(self, rings: Any, budget_s: float) -> None:
        """Read the new records.

        Args:
            rings: the struct lt_ring of all threads (Reader.rings).
            budget_s: CPU time of the calling thread, seconds. With CPU time, no record stays
                unread when other programs take the processor.
        """
        deadline = time.thread_time() + budget_s
        behind = lib.lt_count_new_rings(rings, len(rings))
        if not behind:
            return
        quota, at_once = max(_QUOTA // behind, 16), min(behind, _RINGS_AT_ONCE)
        records = _new_uncleared("uint8_t[]", at_once * quota * SIZE)
        copy = ffi.new("struct lt_ring_copy *")
        copy.file, copy.rings, copy.count = self._memory.mapping(), rings, len(rings)
        copy.at_once, copy.quota, copy.records = at_once, quota, records
        copied: list[bytes] = []
        # The remaining records stay in their rings until the next scan.
        while copy.next < copy.count and time.thread_time() <= deadline:
            count = lib.lt_copy_rings(copy)
            if count < 0:
                raise self._damage(rings[copy.next])
            copied.append(bytes(ffi.buffer(records, count * SIZE)))
        data = b"".join(copied)
        self.lost += int(copy.written) - len(data) // SIZE
        events, marks = split(data)
        new_events, damaged = decode_newest(events, self._keep)
        new_marks, damaged_marks = decode_marks(marks)
        self.lost += damaged + damaged_marks
        # Both lists are nearly sorted, so sorting takes less time than a heap.
        self.newest = sorted(self.newest + new_events, key=end, reverse=True)[: self._keep]
        if new_marks:
            self.marks = heapq.nlargest(_MAX_MARKS, self.marks + new_marks, key=_mark_start)

    def _damage(self, ring: Any) -> LocktopError:
        if ring.capacity > lib.LT_MAX_RING:
            return self._memory.broken(f"a ring of {ring.capacity} records")
        return self._memory.broken("a ring lies outside of it")
