"""The frames of a stream: a whole snapshot, then changes, and ring records, as in a recording."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import msgspec
from msgspec import Struct

from locktop.collector.errors import LocktopError
from locktop.collector.model import Snapshot
from locktop.collector.recording import frame_format, snapshot_payload
from locktop.collector.recording.frame_format import HEADER_SIZE, FrameHeader, FrameType
from locktop.collector.recording.snapshot_chain import ChainPacker
from locktop.collector.sanitize import clean
from locktop.collector.shm import slot_batch
from locktop.collector.shm.slot_batch import SlotBatch

#: Bytes of a frame with its header, and of its payload when unpacked. A snapshot of 10,000 busy
#: threads has some 20 MB. These are smaller than those of a file: strangers may send a stream.
MAX_FRAME = 16 << 20
MAX_UNPACKED = 64 << 20
_LONGEST_REASON = 200
#: Ring records of one frame that a sender makes, and that a listener takes.
RECORDS_OF_FRAME, MAX_RECORDS = 1 << 14, 1 << 17
_MAX_TICKS, _MAX_COUNT = (1 << 64) - 1, (1 << 62)


class _StreamedSlots(Struct, array_like=True, frozen=True):
    """A batch as a stream carries it: a SlotBatch without marks."""

    ticks: int
    time_ns: int
    hz: float
    lost: int
    records: bytes
    packed: int = 0
    first: int = 0
    #: Records of the stream before this batch, with the lost ones: a gap tells of a lost frame.
    before: int = 0


_SLOTS = msgspec.msgpack.Decoder(_StreamedSlots)


class RecordFrame(Struct, frozen=True):
    """A frame of ring records."""

    data: bytes
    count: int  # records


class FramePacker:
    """Makes the frames of one stream."""

    def __init__(
        self,
        key_every_s: float,
        max_frame: int = MAX_FRAME,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Args:
        key_every_s: after so many seconds the next frame is a whole snapshot.
        max_frame: bytes of a frame at most.
        now: a monotonic clock in seconds.
        """
        self._now = now
        self._packer = ChainPacker()
        self._key_every_s = key_every_s
        self._max_frame = max_frame
        self._key_at = 0.0
        self._records = 0  # in the frames of this stream, with the lost ones

    def begin_anew(self) -> None:
        """Begin a stream: the next snapshot is a whole one."""
        self._packer.begin_anew()
        self._records = 0

    def record_frames(self, batch: SlotBatch) -> Iterator[RecordFrame]:
        """Yield the frames of a batch of ring records, each with RECORDS_OF_FRAME at most."""
        for part in slot_batch.parts(batch, RECORDS_OF_FRAME):
            streamed = _StreamedSlots(
                ticks=part.ticks,
                time_ns=part.time_ns,
                hz=part.hz,
                lost=part.lost,
                records=part.records,
                packed=part.packed,
                first=part.first,
                before=self._records,
            )
            self._records += part.packed + part.lost
            data = msgspec.msgpack.encode(streamed)
            packed = frame_format.packed(data)
            frame = frame_format.pack(FrameType.SLOTS, packed, len(data), time.time_ns())
            yield RecordFrame(data=frame, count=part.packed)

    def frame(self, snapshot: Snapshot, time_ns: int | None = None) -> bytes:
        """Return the frame of a snapshot.

        Args:
            snapshot: the scan.
            time_ns: when it was taken, nanoseconds since 1970; None: now.

        Raises:
            LocktopError: the snapshot is too large.
        """
        now = self._now()
        payload = snapshot_payload.encode(snapshot)
        if now - self._key_at >= self._key_every_s:
            self._packer.begin_anew()
        link = self._packer.link(payload) if len(payload) <= MAX_UNPACKED else None
        if link is None or HEADER_SIZE + len(link.packed) > self._max_frame:
            self._packer.begin_anew()
            raise LocktopError(f"a snapshot of {len(payload):,} bytes is too large for the stream")
        if link.type is FrameType.KEY:
            self._key_at = now
        at_ns = time.time_ns() if time_ns is None else time_ns
        return frame_format.pack(link.type, link.packed, link.unpacked, at_ns)


def has_records(frame: bytes) -> bool:
    """Return whether a frame has ring records. Raises LocktopError if it is damaged."""
    return parse_header(frame[:HEADER_SIZE]).type == FrameType.SLOTS


def end_frame(reason: str) -> bytes:
    """Return the last frame of a stream."""
    payload = msgspec.msgpack.encode(reason)
    return frame_format.pack(FrameType.END, payload, len(payload), time.time_ns())


def parse_header(head: bytes) -> FrameHeader:
    """Return the header of a frame. Raises LocktopError if it is damaged or too large."""
    if len(head) < HEADER_SIZE:
        raise LocktopError("damaged: a frame is shorter than its header")
    header = frame_format.parse_header(head)
    if header.stored > MAX_FRAME - HEADER_SIZE or header.unpacked > MAX_UNPACKED:
        raise LocktopError("damaged: a frame is larger than a stream allows")
    return header


class FrameUnpacker:
    """Reads the frames of one stream, which may come from a stranger."""

    def __init__(self) -> None:
        self._before: bytes | None = None
        self._records: int | None = None  # of the stream until now, None before the first batch
        self.ended: str | None = None  # why the stream ended, as its sender says

    def forget(self) -> None:
        """Take no change before the next whole snapshot: a frame is missing."""
        self._before = None

    def content(self, head: bytes, stored: bytes) -> Snapshot | SlotBatch | None:
        """Return the snapshot or the ring records of a frame; None for another frame.

        The ring records that were lost on the way count as lost.

        Args:
            head: the header, HEADER_SIZE bytes.
            stored: the payload as sent.

        Raises:
            LocktopError: the frame is damaged.
        """
        header = parse_header(head)
        if len(stored) != header.stored:
            raise LocktopError("damaged: a frame has another size than its header says")
        frame_format.check(header, head, stored)
        if header.type == FrameType.END:
            self.ended = _reason(stored)
            return None
        if header.type == FrameType.SLOTS:
            return self._slots(frame_format.unpack(stored, header.unpacked))
        if header.type not in (FrameType.KEY, FrameType.CHANGE):
            return None
        before = self._before if header.type == FrameType.CHANGE else None
        self._before = None
        if header.type == FrameType.CHANGE and before is None:
            return None
        payload = frame_format.unpack(stored, header.unpacked, before)
        snapshot = snapshot_payload.decode(payload)
        self._before = payload
        return snapshot

    def _slots(self, payload: bytes) -> SlotBatch:
        try:
            slots = _SLOTS.decode(payload)
        except (msgspec.MsgspecError, ValueError) as error:
            raise LocktopError(f"damaged: ring records: {error}") from None
        numbers = (slots.ticks, slots.time_ns, slots.lost, slots.first, slots.packed, slots.before)
        if (
            not 1 <= slots.hz <= 1e12
            or not all(0 <= number <= _MAX_TICKS for number in numbers)
            or max(slots.time_ns, slots.lost, slots.before) > _MAX_COUNT
            or slots.packed > MAX_RECORDS
            or bool(slots.packed) is not bool(slots.records)
        ):
            raise LocktopError("damaged: a batch of ring records has an impossible number")
        missing = max(0, slots.before - self._records) if self._records is not None else 0
        taken = SlotBatch(
            ticks=slots.ticks,
            time_ns=slots.time_ns,
            hz=slots.hz,
            lost=min(slots.lost + missing, _MAX_COUNT),
            records=slots.records,
            packed=slots.packed,
            first=slots.first,
        )
        slot_batch.slots(taken)  # so that damage ends this frame, and no time line later
        self._records = slots.before + slots.packed + slots.lost
        return taken


def _reason(payload: bytes) -> str:
    try:
        return clean(msgspec.msgpack.decode(payload, type=str), _LONGEST_REASON)
    except (msgspec.MsgspecError, ValueError):
        raise LocktopError("damaged: the end of the stream gives no reason") from None
