"""The ring records of a memory: several batches are packed as one group, which saves bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.recording import frame_format
from locktop.collector.shm import slot_batch
from locktop.collector.shm.slot_batch import SlotBatch

#: A group ends with so many bytes or batches.
_GROUP_BYTES, _GROUP_BATCHES = 64 << 10, 16
#: Bytes of Python objects beside each part.
_EACH = 300
_BATCHES = msgspec.msgpack.Decoder(list[SlotBatch])


class PackedSlots(Struct, frozen=True):
    """Ring records, packed: one batch in a file, a group in the memory."""

    time_ns: int  # of the last copy: the records are older
    first_ns: int  # when the oldest of them began; 0: not known
    packed: bytes
    unpacked: int
    count: int = 0  # records and marks


class SlotStore:
    """The batches, the oldest first. One thread at a time may call the methods."""

    def __init__(self) -> None:
        self._groups: deque[PackedSlots] = deque()
        self._open: list[SlotBatch] = []  # not packed yet
        self._open_bytes = self._groups_bytes = 0

    def __len__(self) -> int:
        """The number of parts that can be forgotten one by one."""
        return len(self._groups) + bool(self._open)

    @property
    def size(self) -> int:
        """The bytes that all batches take."""
        return self._groups_bytes + self._open_bytes

    def add(self, batch: SlotBatch) -> None:
        """Add a batch, whose slots are packed."""
        self._open.append(batch)
        self._open_bytes += len(batch.records) + len(batch.marks) + _EACH
        if len(self._open) >= _GROUP_BATCHES or self._open_bytes >= _GROUP_BYTES:
            self._pack()

    def _pack(self) -> None:
        group = _pack_batches(self._open, msgspec.msgpack.encode(self._open))
        self._groups.append(group)
        self._groups_bytes += len(group.packed) + _EACH
        self._open, self._open_bytes = [], 0

    def forget_oldest(self) -> PackedSlots:
        """Forget the oldest part, and return it. There must be one."""
        if not self._groups:
            self._pack()
        gone = self._groups.popleft()
        self._groups_bytes -= len(gone.packed) + _EACH
        return gone

    def forget_before(self, time_ns: int) -> None:
        """Forget the parts that were copied before a time."""
        while self._groups and self._groups[0].time_ns < time_ns:
            self.forget_oldest()
        if not self._groups and self._open and self._open[-1].time_ns < time_ns:
            self.forget_oldest()

    def parts(self, from_ns: int, to_ns: int) -> list[PackedSlots | SlotBatch]:
        """Return the parts that touch a span, for unpacked()."""
        # A batch has records from before its copy, so later batches may touch the span, too.
        groups = [
            group for group in self._groups if group.time_ns >= from_ns and group.first_ns < to_ns
        ]
        return [*groups, *self._open]

    def all_parts(self) -> list[PackedSlots | SlotBatch]:
        """Return all parts, for unpacked()."""
        return [*self._groups, *self._open]


def unpacked(parts: list[PackedSlots | SlotBatch]) -> Iterator[SlotBatch]:
    """Yield the batches of some parts. Any thread may call this function."""
    for part in parts:
        if isinstance(part, SlotBatch):
            yield part
        else:
            yield from _BATCHES.decode(frame_format.unpack(part.packed, part.unpacked))


def dense(slots: SlotBatch) -> SlotBatch:
    """Return a batch with packed slots. The losses have a list of their own."""
    return replace(slot_batch.pack(slots), lost=0)


def packed_alone(batch: SlotBatch) -> PackedSlots:
    """Return one batch as a file has it."""
    return _pack_batches([batch], msgspec.msgpack.encode(batch))


def _pack_batches(batches: list[SlotBatch], data: bytes) -> PackedSlots:
    return PackedSlots(
        time_ns=batches[-1].time_ns,
        first_ns=min(map(slot_batch.first_ns, batches)),
        packed=frame_format.packed(data),
        unpacked=len(data),
        count=sum(batch.packed + batch.mark_count for batch in batches),
    )
