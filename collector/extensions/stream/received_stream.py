"""The snapshots that a listener received, with its own notes, for a screen or a file."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.analysis.rate_limit import RateLimit
from locktop.collector.model import Process, Snapshot
from locktop.collector.shm.slot_batch import SlotBatch

#: Lines about peers: so many of them in so many seconds, and so many of them as notes.
_LINES, _PERIOD_S = 5, 10.0
_KEPT = 3


class ReceivedScan(Struct, frozen=True):
    """A snapshot as it arrived."""

    snapshot: Snapshot
    #: When it was taken, by the clock here, nanoseconds since 1970; None: it was repeated.
    time_ns: int | None
    records: tuple[SlotBatch, ...] = ()  # the ring records since the snapshot before


class ScanMemory(Protocol):
    """Keeps what arrives."""

    def keep_received(self, scan: ReceivedScan) -> None:
        """Keep a scan, whose snapshot has the notes of the listener, too. Raises nothing."""
        ...


class ReceivedStream:
    """Publishes snapshots with notes on the stream. Any thread may call the methods."""

    def __init__(
        self,
        publish: Callable[[Snapshot], None],
        log: Callable[[str], None] | None = None,
        memory: ScanMemory | None = None,
    ) -> None:
        """Args:
        publish: gets each snapshot.
        log: gets each line about a peer; None: these lines are notes of the next snapshots.
        memory: gets each scan with its ring records, after ``publish``.
        """
        self._memory = memory
        self._publish = publish
        self._log = log
        self._lines: deque[str] = deque(maxlen=_KEPT)
        self._limit = RateLimit(_LINES, _PERIOD_S)
        self._newest: Snapshot | None = None
        self._losses = ""  # a note on what was lost before the newest snapshot
        self._lock = threading.Lock()
        self._is_closed = False
        #: The reason that no snapshot comes for now; "" while they come.
        self.stale = ""

    def scan(self, scan: ReceivedScan, losses: str = "") -> None:
        """Publish a snapshot; ``losses``: a note on what was lost before, "" for none."""
        with self._lock:
            self._newest = scan.snapshot
            self._losses = losses
            self.stale = ""
            published = self._publish_newest()
            if self._memory is not None:
                self._memory.keep_received(replace(scan, snapshot=published))

    def waiting(self, reason: str) -> None:
        """Publish the last snapshot again as ``stale``; before the first one, an empty one."""
        with self._lock:
            if self._newest is None:
                self._newest = _nothing_yet()
            self.stale = reason
            self._publish_newest()

    def line(self, text: str) -> None:
        """Tell of a peer that was refused or sent damaged data. Too many lines are left out."""
        with self._lock:
            if not self._limit.allows(time.monotonic()):
                return
            if self._log is not None:
                self._log(text)
            elif text not in self._lines:
                self._lines.append(text)
                if self.stale:  # no snapshot comes soon that could carry the note
                    self._publish_newest()

    def close(self) -> None:
        """Publish nothing more. The threads of connections may outlive the screen."""
        with self._lock:
            self._is_closed = True

    def _publish_newest(self) -> Snapshot:
        assert self._newest is not None
        own = (*((self._losses,) if self._losses else ()), *self._lines)
        published = replace(self._newest, notes=(*self._newest.notes, *own))
        if self._is_closed:
            return published
        try:
            self._publish(published)
        # A fault here must end neither the stream nor its thread. The next snapshot tells of it.
        except Exception as error:
            fault = f"a snapshot was not shown: {type(error).__name__}: {error}"
            if self._log is not None:
                self._log(fault)
            elif fault not in self._lines:
                self._lines.append(fault)
        return published


def _nothing_yet() -> Snapshot:
    process = Process(pid=0, comm="no process yet", cmdline=(), exe="", started_at="")
    return Snapshot(
        taken_at="", host="", source="preload", duration_s=0.0, interval_s=0.0, process=process,
        threads=(), locks=(),
    )  # fmt: skip
