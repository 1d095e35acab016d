"""Sends the snapshots of a process to a listener, for as long as the process runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from locktop.collector.errors import LocktopError
from locktop.collector.model import Snapshot
from locktop.collector.stream import stream_frames
from locktop.collector.stream.destinations import StreamDestination
from locktop.collector.stream.stream_frames import FramePacker

#: Without a new snapshot the last one is sent again after this time, as a sign of life. Seconds.
SIGN_OF_LIFE_S = 2.0
#: The pause between two tries to reach a listener that went away, seconds.
AGAIN_S = 1.0
#: A signal handler must not take a lock, so ``take`` looks whether to stop, each so many seconds.
_POLL_S = 0.1


class Outbox:
    """Passes the newest snapshot from the thread that scans to the thread that sends.

    A slow listener gets fewer snapshots, so the memory is bounded.
    """

    def __init__(self) -> None:
        self._newest: Snapshot | None = None
        self._changed = threading.Condition()
        self.stopped = False

    def put(self, snapshot: Snapshot) -> None:
        """Replace the snapshot."""
        with self._changed:
            self._newest = snapshot
            self._changed.notify()

    def stop(self) -> None:
        """Let ``take`` return at once. A signal handler may call this method."""
        self.stopped = True

    def take(self, timeout_s: float) -> Snapshot | None:
        """Return the newest snapshot not taken yet; None if there was none in this time."""
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
        self.sent_frames = self.sent_bytes = 0

    def open(self) -> None:
        """Reach the listener. Raises LocktopError."""
        self._destination.open()
        self._packer.begin_anew()
        self._is_open = True

    def run(self) -> None:
        """Send snapshots until the process ends or the outbox stops."""
        last: Snapshot | None = None
        while not self._outbox.stopped:
            snapshot = self._outbox.take(SIGN_OF_LIFE_S) or last
            if snapshot is None:
                continue
            last = snapshot
            self._try_to_send(snapshot)
            if snapshot.ended:
                break
        self._finish("the process has ended" if last and last.ended else "its sender was stopped")

    def _try_to_send(self, snapshot: Snapshot) -> None:
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
            frame = self._packer.frame(snapshot)
        except LocktopError as error:
            if not self._is_too_large:
                self._log(str(error))
            self._is_too_large = True
            return
        try:
            self._destination.send(frame)
        except LocktopError as error:
            self._log(f"{error}; trying again each second")
            self._is_open = False
            self._again_at = time.monotonic() + AGAIN_S
        else:
            self.sent_frames += 1
            self.sent_bytes += len(frame)

    def _finish(self, reason: str) -> None:
        try:
            if self._is_open:
                self._destination.send(stream_frames.end_frame(reason))
        except LocktopError as error:
            self._log(str(error))
        finally:
            self._destination.close()
