"""Sends the snapshots and ring records of a process to a listener, while the process runs."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.stream import stream_frames
from locktop.collector.extensions.stream.destinations import StreamDestination
from locktop.collector.extensions.stream.stream_frames import FramePacker
from locktop.collector.model import Snapshot
from locktop.collector.shm import slot_batch
from locktop.collector.shm.slot_batch import SlotBatch

#: Without a new snapshot the last one is sent again after this time, as a sign of life. Seconds.
SIGN_OF_LIFE_S = 2.0
#: The pause between two tries to reach a listener that went away, seconds.
AGAIN_S = 1.0
#: The pause before the end is sent again: a burst of losses is over then. Seconds.
END_PAUSE_S = 0.3
#: A signal handler must not take a lock, so ``take`` looks whether to stop, each so many seconds.
_POLL_S = 0.1
#: Bytes of ring records that wait; the oldest are dropped, and count as lost.
MAX_WAITING_BYTES = 4 << 20
#: The share of the time that ring records may take on a slow network: snapshots come first. And
#: seconds of it that may be spent in advance.
_RECORD_SHARE, _ADVANCE_S = 0.5, 1.0


class SentScan(Struct, frozen=True):
    """A snapshot, and when it was taken: nanoseconds since 1970."""

    snapshot: Snapshot
    time_ns: int


class Outbox:
    """Passes the newest snapshot from the thread that scans to the thread that sends.

    Ring records come from a third thread. A slow listener gets fewer snapshots and records, so the
    memory is bounded.
    """

    def __init__(self) -> None:
        self._newest: SentScan | None = None
        self._changed = threading.Condition()
        self._records: deque[SlotBatch] = deque()
        self._waiting_bytes = 0
        self._dropped = 0  # records
        self.stopped = False

    def put(self, snapshot: Snapshot, time_ns: int | None = None) -> None:
        """Replace the snapshot; ``time_ns``: when it was taken, None: now."""
        scan = SentScan(snapshot=snapshot, time_ns=time.time_ns() if time_ns is None else time_ns)
        with self._changed:
            self._newest = scan
            self._changed.notify()

    def add_slots(self, slots: SlotBatch) -> None:
        """Add ring records. They are sent before the next snapshot, without marks."""
        if slots.marks:
            slots = slot_batch.drop_marks(slots)
        if slots.is_empty:
            return
        with self._changed:
            self._records.append(slots)
            self._waiting_bytes += len(slots.records)
            while self._waiting_bytes > MAX_WAITING_BYTES and len(self._records) > 1:
                self.drop(self._pop())

    def drop(self, slots: SlotBatch) -> None:
        """Count a batch as lost."""
        with self._changed:
            self._dropped += slots.packed + slots.lost

    def next_slots(self) -> SlotBatch | None:
        """Return the oldest batch of ring records, with those that were dropped before as lost."""
        with self._changed:
            if not self._records:
                return None
            slots = self._pop()
            dropped, self._dropped = self._dropped, 0
            return replace(slots, lost=slots.lost + dropped) if dropped else slots

    def _pop(self) -> SlotBatch:
        slots = self._records.popleft()
        self._waiting_bytes -= len(slots.records)
        return slots

    def stop(self) -> None:
        """Let ``take`` return at once. A signal handler may call this method."""
        self.stopped = True

    def take(self, timeout_s: float) -> SentScan | None:
        """Return the newest scan not taken yet; None if there was none in this time."""
        until = time.monotonic() + timeout_s
        with self._changed:
            while self._newest is None and not self.stopped and time.monotonic() < until:
                self._changed.wait(_POLL_S)
            newest, self._newest = self._newest, None
            return newest


class StreamSender:
    """Sends what an outbox has. The first connection must succeed, later ones are tried again."""

    def __init__(
        self, outbox: Outbox, destination: StreamDestination, log: Callable[[str], None]
    ) -> None:
        """``log`` gets one line for each event that the user should know."""
        self._outbox = outbox
        self._destination = destination
        self._log = log
        self._packer = FramePacker(destination.key_every_s, destination.max_frame)
        self._again_at = 0.0
        self._is_open = self._is_too_large = False
        self._paid_at = 0.0  # until then the share of the time covers the ring records
        self.sent_frames = self.sent_records = self.sent_bytes = 0

    def open(self) -> None:
        """Reach the listener. Raises LocktopError."""
        self._destination.open()
        self._packer.begin_anew()
        self._is_open = True

    def run(self) -> None:
        """Send snapshots until the process ends or the outbox stops."""
        last: SentScan | None = None
        has_ended = False
        while not (self._outbox.stopped or has_ended):
            scan = self._outbox.take(SIGN_OF_LIFE_S) or last
            if scan is None:
                continue
            last, has_ended = scan, scan.snapshot.ended
            self._try_to_send(scan)
        self._finish("the process has ended" if has_ended else "its sender was stopped", last)

    def _try_to_send(self, scan: SentScan) -> None:
        if not self._is_open:
            if time.monotonic() < self._again_at:
                return
            try:
                self.open()
            except LocktopError:
                self._again_at = time.monotonic() + AGAIN_S
                return
            self._log("the listener is back")
        try:
            self._send_records(is_last=scan.snapshot.ended)
            self._send_snapshot(scan)
        except LocktopError as error:
            self._log(f"{error}; trying again each second")
            self._is_open = False
            self._again_at = time.monotonic() + AGAIN_S

    def _send_snapshot(self, scan: SentScan) -> None:
        try:
            frame = self._packer.frame(scan.snapshot, scan.time_ns)
        except LocktopError as error:
            if not self._is_too_large:
                self._log(str(error))
            self._is_too_large = True
            return
        self._destination.send(frame)
        self.sent_frames += 1
        self.sent_bytes += len(frame)

    def _send_records(self, is_last: bool) -> None:
        """Send the ring records that wait, as far as their share of the time allows."""
        while is_last or self._paid_at <= time.monotonic():
            batch = self._outbox.next_slots()
            if batch is None:
                return
            began = time.monotonic()
            self._send_batch(batch)
            used_s = time.monotonic() - began
            self._paid_at = max(self._paid_at, began - _ADVANCE_S) + used_s / _RECORD_SHARE

    def _send_batch(self, batch: SlotBatch) -> None:
        left = batch
        try:
            for frame in self._packer.record_frames(batch):
                self._destination.send(frame.data)
                left = replace(left, packed=left.packed - frame.count, lost=0)
                self.sent_records += frame.count
                self.sent_bytes += len(frame.data)
        except LocktopError:
            self._outbox.drop(left)
            raise

    def _finish(self, reason: str, last: SentScan | None) -> None:
        """Send the end; over UDP several times, each time after the whole last snapshot."""
        try:
            for number in range(self._destination.ends if self._is_open else 0):
                if number:
                    time.sleep(END_PAUSE_S)
                    self._packer.begin_anew()
                    if last is not None:
                        self._send_snapshot(last)
                self._destination.send(stream_frames.end_frame(reason))
        except LocktopError as error:
            self._log(str(error))
        finally:
            self._destination.close()
