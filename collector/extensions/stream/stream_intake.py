"""One stream as it arrives: snapshots, each with the ring records before it, in local time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from msgspec.structs import replace

from locktop.collector.extensions.stream.received_stream import ReceivedScan, ReceivedStream
from locktop.collector.extensions.stream.stream_clock import StreamClock
from locktop.collector.extensions.stream.stream_frames import FrameUnpacker, parse_header
from locktop.collector.shm.slot_batch import SlotBatch

#: Bytes and batches of ring records that wait for the next snapshot; the oldest are dropped.
MAX_HELD_BYTES, _MAX_HELD = 8 << 20, 1000


class StreamIntake:
    """Reads the frames of one stream. One thread uses it."""

    def __init__(self, received: ReceivedStream, wall_ns: Callable[[], int] = time.time_ns) -> None:
        """Args:
        received: gets the snapshots.
        wall_ns: the clock here, nanoseconds since 1970.
        """
        self._received = received
        self._clock = StreamClock(wall_ns)
        self.unpacker = FrameUnpacker()
        self._held: deque[SlotBatch] = deque()
        self.held_bytes = 0
        self._dropped = 0  # records
        self._last_ns: int | None = None  # of the snapshot before, as its sender says
        self._scan: ReceivedScan | None = None

    def take(self, head: bytes, stored: bytes) -> bool:
        """Take a frame; return whether it has a snapshot, which ``publish`` then publishes.

        Args:
            head: the header.
            stored: the payload as sent.

        Raises:
            LocktopError: the frame is damaged.
        """
        content = self.unpacker.content(head, stored)
        if content is None:
            return False
        sent_ns = parse_header(head).time_ns
        time_ns = self._clock.frame_ns(sent_ns)
        if isinstance(content, SlotBatch):
            self._hold(content)
            return False
        # A sign of life repeats a snapshot with its time, and is no scan of its own.
        is_new = sent_ns != self._last_ns
        self._last_ns = sent_ns
        self._scan = ReceivedScan(
            snapshot=content, time_ns=time_ns if is_new else None, records=self._take_held()
        )
        return True

    @property
    def has_new_scan(self) -> bool:
        """Whether the snapshot of the last frame is no repetition of the one before."""
        return self._scan is not None and self._scan.time_ns is not None

    def publish(self, losses: str = "") -> None:
        """Publish the snapshot of the last frame; ``losses``: what was lost before."""
        assert self._scan is not None
        self._received.scan(self._scan, losses)

    def _hold(self, batch: SlotBatch) -> None:
        self._held.append(replace(batch, time_ns=self._clock.earlier_ns(batch.time_ns)))
        self.held_bytes += len(batch.records)
        while self.held_bytes > MAX_HELD_BYTES or len(self._held) > _MAX_HELD:
            gone = self._held.popleft()
            self.held_bytes -= len(gone.records)
            self._dropped += gone.packed + gone.lost

    def _take_held(self) -> tuple[SlotBatch, ...]:
        """Return the records since the snapshot before; the first batch has the losses."""
        if not self._held:
            return ()
        first = self._held[0]
        self._held[0] = replace(first, lost=first.lost + self._dropped)
        taken = tuple(self._held)
        self._held.clear()
        self.held_bytes = self._dropped = 0
        return taken
