"""The flight recorder: copies ring slots, drops what was overwritten, decodes the rest."""

from __future__ import annotations

import heapq
import time
from typing import Any, NamedTuple

from locktop.collector import abi
from locktop.collector.abi import ThreadBlock, lib
from locktop.collector.reading import RawThread
from locktop.collector.shm import SharedMemory

SIZE: int = lib.LT_RECORD_SIZE
_MOST_RECORDS = 1 << 20
#: Records decoded in one look, shared among the threads that have new ones.
_QUOTA = 8192
_RING_HEAD_AT = abi.offset_of("struct lt_thread", "ring_head")
_TYPES = frozenset({lib.LT_RECORD_WAIT, lib.LT_RECORD_TIMEOUT})
_SHAPE = (*10 * (int,), bytes)


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


def _end(event: RawEvent) -> int:
    """When it was over."""
    return event.start + event.wait + event.hold


def decode(data: bytes) -> tuple[list[RawEvent], int]:
    """Return the records in ``data`` (a whole number of them) and how many were damaged."""
    import msgpack

    unpacker = msgpack.Unpacker(
        max_buffer_size=max(len(data), 1), max_array_len=11, max_bin_len=SIZE,
        max_str_len=0, max_map_len=0, max_ext_len=0,
    )  # fmt: skip
    unpacker.feed(data)
    events: list[RawEvent] = []
    try:
        for record in unpacker:
            if not _sound(record) or unpacker.tell() != (len(events) + 1) * SIZE:
                break
            events.append(RawEvent._make(record[:10]))
    except Exception:  # what a decoder may raise over forged bytes is open-ended
        pass
    if len(events) * SIZE == len(data):
        return events, 0
    return _decode_rest(data, events)


def _decode_rest(data: bytes, events: list[RawEvent]) -> tuple[list[RawEvent], int]:
    """Go on after a damaged record: each begins at a known place."""
    bad_at = len(events) * SIZE
    rest, damaged = data[bad_at + SIZE :], 1
    for at in range(0, len(rest) - SIZE + 1, SIZE):
        found = _decode_one(rest[at : at + SIZE])
        if found is None:
            damaged += 1
        else:
            events.append(found)
    return events, damaged


def _decode_one(data: bytes) -> RawEvent | None:
    import msgpack

    try:
        record = msgpack.unpackb(data, max_array_len=11, max_bin_len=SIZE)
    except Exception:
        return None
    return RawEvent._make(record[:10]) if _sound(record) else None


def _sound(record: Any) -> bool:
    return (
        type(record) is list
        and tuple(map(type, record)) == _SHAPE
        and record[0] in _TYPES
        and min(record[:-1]) >= 0  # forged ones may be negative
        and max(record[2:6]) <= 0xFFFFFFFF
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
        self.lost = 0

    def read(self, threads: list[RawThread], offsets: list[int], budget_s: float) -> None:
        """Read what is new. ``offsets`` are those of the threads' blocks in the file."""
        deadline = time.monotonic() + budget_s
        behind = [
            (thread, offset)
            for thread, offset in zip(threads, offsets, strict=True)
            if thread.block.ring_head != self._next.get(thread.index, 0)
        ]
        if not behind:
            return
        quota, copied = max(_QUOTA // len(behind), 16), []
        for thread, offset in behind:
            if time.monotonic() > deadline:
                break  # what is left stays in its ring until the next look
            copied.append(self._read_ring(thread.index, thread.block, offset, quota))
        found, damaged = decode(b"".join(copied))
        self.lost += damaged
        self.newest = heapq.nlargest(self._keep, self.newest + found, key=_end)

    def _read_ring(self, index: int, block: ThreadBlock, at: int, quota: int) -> bytes:
        head, first = block.ring_head, self._next.get(index, 0)
        capacity = block.ring_capacity if block.ring else 0
        if capacity > _MOST_RECORDS:
            raise self._memory.broken(f"a ring of {capacity} records")
        if head < first:  # not the ring that was followed
            first = head
        wanted = min(head - first, max(capacity - 1, 0), quota)
        start = head - wanted
        data = self._copy(block.ring, capacity, start, wanted)
        head_after = int.from_bytes(self._memory.read(at + _RING_HEAD_AT, 8), abi.BYTE_ORDER)
        # The writer may be at work on the slot of record head_after - capacity.
        valid_from = max(start, head_after - capacity + 1)
        valid = data[max(valid_from - start, 0) * SIZE :]
        self.lost += (head - first) - len(valid) // SIZE
        self._next[index] = head
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
