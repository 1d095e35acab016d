"""The flight recorder: copies ring slots, drops what was overwritten, decodes the rest."""

from __future__ import annotations

import heapq
import time
from typing import NamedTuple

from locktop.collector import native
from locktop.collector.native import lib
from locktop.collector.shm import layout
from locktop.collector.shm.reader import RawThread
from locktop.collector.shm.segment import SharedMemory

SIZE: int = lib.LT_RECORD_SIZE
_MAX_RECORDS = 1 << 20
#: Records decoded in one look, shared among the threads that have new ones.
_QUOTA = 8192
_MAX_MARKS = 100
_RING_HEAD_AT = native.offset_of("struct lt_thread", "ring_head")
#: The drawing in abi.h: each number is as wide as it may get, so what stands between the numbers is
#: always the same. Where it is, nothing else can come out of the bytes than whole records.
_MARKS = (
    (0, 0x9B),
    *((at, 0xCE) for at in (3, 8, 13, 18)),
    *((at, 0xCF) for at in (23, 32, 41, 50)),
    *zip(range(59, 64), b"\xc4\x03\0\0\0", strict=True),
)
_NUMBERS = 10
#: The same of a mark, which begins differently.
_MARK_BEGINS = b"\x95"
_MARK_MARKS = (
    *((0, 0x95), (1, lib.LT_RECORD_MARK), (2, 0xCE), (7, 0xCF)),
    *((16, 0xD9), (17, lib.LT_MARK_TEXT), (62, 0xC4), (63, 0)),
)
_FIXINT_END = 0x80
_TYPES = (lib.LT_RECORD_WAIT, lib.LT_RECORD_TIMEOUT, lib.LT_RECORD_HOLD)


class RawEvent(NamedTuple):
    """One record (struct layout in abi.h); times in ticks."""

    type: int
    kind: int
    tid: int
    lock: int
    stack: int
    holder: int
    start: int
    wait: int
    hold: int
    site: int


def _made(mark: RawMark) -> int:
    return mark.start


class RawMark(NamedTuple):
    """One mark; the time in ticks."""

    tid: int
    start: int
    text: bytes


def end(event: RawEvent) -> int:
    """When it was over, ticks."""
    return event.start + event.wait + event.hold


def decode(data: bytes) -> tuple[list[RawEvent], int]:
    """Return the records in ``data`` (a whole number of them) and how many were damaged."""
    damaged = 0
    if not _are_sound(data):
        records = [data[at : at + SIZE] for at in range(0, len(data), SIZE)]
        sound = [record for record in records if _are_sound(record)]
        data, damaged = b"".join(sound), len(records) - len(sound)
    import msgpack

    unpacker = msgpack.Unpacker(use_list=False, max_buffer_size=max(len(data), 1))
    unpacker.feed(data)
    return [RawEvent._make(record[:_NUMBERS]) for record in unpacker], damaged


def decode_marks(records: list[bytes]) -> tuple[list[RawMark], int]:
    """Return the marks in ``records`` and how many were damaged."""
    import msgpack

    sound = [record for record in records if all(record[at] == mark for at, mark in _MARK_MARKS)]
    unpacked = (msgpack.unpackb(record, raw=True) for record in sound)
    marks = [RawMark(tid, start, text.rstrip(b"\0")) for _, tid, start, text, _ in unpacked]
    return marks, len(records) - len(sound)


def split(data: bytes) -> tuple[bytes, list[bytes]]:
    """Return the records of ``data`` that are no marks, and those that are."""
    begins = data[::SIZE]
    if _MARK_BEGINS not in begins:
        return data, []
    rest: list[bytes] = []
    marks: list[bytes] = []
    for number, begin in enumerate(begins):
        record = data[number * SIZE : (number + 1) * SIZE]
        (marks if begin == _MARK_BEGINS[0] else rest).append(record)
    return b"".join(rest), marks


def _are_sound(data: bytes) -> bool:
    count = len(data) // SIZE
    types, kinds = data[1::SIZE], data[2::SIZE]
    return (
        sum(map(types.count, _TYPES)) == count
        and max(kinds, default=0) < _FIXINT_END
        and all(data[at::SIZE].count(mark) == count for at, mark in _MARKS)
    )


class FlightRecorder:
    """Follows the rings of all threads of one file.

    ``lost`` counts records that were written but never decoded here: overwritten before they could
    be read, among them those from before the first look, or passed over because a look may only
    take so long.
    """

    def __init__(self, memory: SharedMemory, keep: int = 300) -> None:
        self._memory = memory
        self._keep = keep
        self._next: dict[int, int] = {}  # block index -> number of the first record not yet read
        self.newest: list[RawEvent] = []
        self.marks: list[RawMark] = []
        self.lost = 0

    def read(self, threads: list[RawThread], budget_s: float) -> None:
        """Read what is new. ``budget_s``: of this thread's own time, so that no record is left
        unread where others take the processor from it."""
        deadline = time.thread_time() + budget_s
        behind = [
            thread
            for thread in threads
            if thread.block.ring_head != self._next.get(thread.index, 0)
        ]
        if not behind:
            return
        quota, copied = max(_QUOTA // len(behind), 16), []
        for thread in behind:
            if time.thread_time() > deadline:
                break  # what is left stays in its ring until the next look
            copied.append(self._read_ring(thread, quota))
        data, marks = split(b"".join(copied))
        found, damaged = decode(data)
        made, damaged_marks = decode_marks(marks)
        self.lost += damaged + damaged_marks
        self.newest = heapq.nlargest(self._keep, self.newest + found, key=end)
        if made:
            self.marks = heapq.nlargest(_MAX_MARKS, self.marks + made, key=_made)

    def _read_ring(self, thread: RawThread, quota: int) -> bytes:
        block = thread.block
        head, first = block.ring_head, self._next.get(thread.index, 0)
        capacity = block.ring_capacity if block.ring else 0
        if capacity > _MAX_RECORDS:
            raise self._memory.broken(f"a ring of {capacity} records")
        if head < first:  # not the ring that was followed
            first = head
        wanted = min(head - first, max(capacity - 1, 0), quota)
        start = head - wanted
        data = self._copy(block.ring, capacity, start, wanted)
        head_after = int.from_bytes(
            self._memory.read(thread.offset + _RING_HEAD_AT, 8), layout.BYTE_ORDER
        )
        # The writer may be at work on the slot of record head_after - capacity.
        valid_from = max(start, head_after - capacity + 1)
        valid = data[max(valid_from - start, 0) * SIZE :]
        self.lost += (head - first) - len(valid) // SIZE
        self._next[thread.index] = head
        return valid

    def _copy(self, ring: int, capacity: int, start: int, count: int) -> bytes:
        if not count:
            return b""
        at = start % capacity
        whole = min(count, capacity - at)
        data = self._memory.read(ring + at * SIZE, whole * SIZE)
        if whole < count:
            data += self._memory.read(ring, (count - whole) * SIZE)
        return data
