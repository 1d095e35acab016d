"""Snapshots as the frames of a stream: a whole one, then changes, as in a recording."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from locktop.collector.errors import LocktopError
from locktop.collector.model import Snapshot
from locktop.collector.recording import frame_format, snapshot_payload
from locktop.collector.recording.frame_format import HEADER_SIZE, FrameHeader, FrameType
from locktop.collector.recording.snapshot_chain import ChainPacker
from locktop.collector.sanitize import clean

#: Bytes of a frame with its header, and of its payload when unpacked. A snapshot of 10,000 busy
#: threads has some 20 MB. These are smaller than those of a file: strangers may send a stream.
MAX_FRAME = 16 << 20
MAX_UNPACKED = 64 << 20
_LONGEST_REASON = 200


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

    def begin_anew(self) -> None:
        """Make the next frame a whole snapshot."""
        self._packer.begin_anew()

    def frame(self, snapshot: Snapshot) -> bytes:
        """Return the frame of a snapshot. Raises LocktopError if the snapshot is too large."""
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
        return frame_format.pack(link.type, link.packed, link.unpacked, time.time_ns())


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
        self.ended: str | None = None  # why the stream ended, as its sender says

    def forget(self) -> None:
        """Take no change before the next whole snapshot: a frame is missing."""
        self._before = None

    def snapshot(self, head: bytes, stored: bytes) -> Snapshot | None:
        """Return the snapshot of a frame; None for a frame without one.

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


def _reason(payload: bytes) -> str:
    try:
        return clean(msgspec.msgpack.decode(payload, type=str), _LONGEST_REASON)
    except (msgspec.MsgspecError, ValueError):
        raise LocktopError("damaged: the end of the stream gives no reason") from None
