"""Records a process: snapshots from whoever scans, ring records from a thread of its own."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from locktop import __version__
from locktop.collector.errors import LocktopError
from locktop.collector.model import Notable, Snapshot
from locktop.collector.recording.notable_moments import NotableMoments
from locktop.collector.recording.recording_info import RecordingInfo
from locktop.collector.recording.recording_writer import RecordingWriter
from locktop.collector.recording.scan_time import scan_time_ns
from locktop.collector.recording.segments import LEAST_BYTES, SegmentWriter
from locktop.collector.shm import slot_batch
from locktop.collector.shm.ring_drain import LONG_WAIT_S, Drained, RingDrain
from locktop.collector.shm.slot_batch import SlotBatch
from locktop.collector.sources.base import Source

#: Long waits between two snapshots; the oldest are left out.
_MAX_LONG_BYTES = 1000 * 64
Writer = RecordingWriter | SegmentWriter

#: Seconds of ring records in one frame. After a SIGKILL so much is missing.
_BATCH_S = 0.5
#: The most calls that empty the rings at the end. A busy process goes on to fill them.
_LAST_CALLS = 1000


class RecordingPath(Struct, frozen=True):
    """Where a recording goes. With a limit ``path`` becomes a directory of segments."""

    path: Path
    max_bytes: int | None = None
    keep_s: float | None = None  # seconds

    def check(self) -> None:
        """Check what can be checked before there is a snapshot.

        Raises:
            LocktopError: the path exists or cannot be made, or a limit is too small.
        """
        if self.max_bytes is not None and self.max_bytes < LEAST_BYTES:
            raise LocktopError(f"--max-size must be at least {LEAST_BYTES >> 20}M")
        if str(self.path) in ("-", "."):
            raise LocktopError("a recording needs the name of a new file")
        if os.path.lexists(self.path):
            raise LocktopError(f"{self.path} is there already; give another FILE")
        if not self.path.parent.is_dir():
            raise LocktopError(f"{self.path}: no such directory")

    def open(self, info: RecordingInfo, time_ns: int) -> Writer:
        """Make the file or the directory. Raises LocktopError."""
        if self.max_bytes is None and self.keep_s is None:
            return RecordingWriter(self.path, info, time_ns)
        return SegmentWriter(self.path, info, time_ns, self.max_bytes, self.keep_s)


class RecordingFigures(Struct):
    """The amounts that a recorder has written."""

    duration_s: float = 0.0
    snapshots: int = 0
    records: int = 0
    lost: int = 0  # ring records that were overwritten before they could be copied
    size: int = 0  # bytes
    kept_s: float | None = None  # what the segments have; None: all


class Recorder:
    """Writes one recording. One thread calls the methods."""

    def __init__(self, source: Source, destination: RecordingPath) -> None:
        """Args:
        source: the process; the recorder does not scan it.
        destination: the file, which ``add`` makes with the first snapshot.
        """
        self._source = source
        self._destination = destination
        self._writer: Writer | None = None
        self._drain: RingDrain | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()  # of the writer
        self._last: Snapshot | None = None
        self._last_ns = 0  # the time of the last snapshot, since 1970
        self._long_waits: SlotBatch | None = None  # since the last snapshot
        self._notable_moments = NotableMoments(LONG_WAIT_S)
        self._stopped = threading.Event()
        self._is_finished = False
        self._began = 0.0
        self.figures = RecordingFigures()
        #: Why the recording ended early, "" for no reason. The process can still be scanned.
        self.problem = ""

    @property
    def path(self) -> Path:
        """The file or the directory."""
        return self._destination.path

    def add(self, snapshot: Snapshot) -> None:
        """Append a snapshot. A full disk ends the recording, see ``problem``.

        Raises:
            LocktopError: the file cannot be made. Later calls do nothing.
        """
        if self.problem:
            return
        if self._writer is None:
            try:
                self._begin(snapshot)
            except LocktopError as error:
                self.problem = str(error)
                raise
        time_ns = self._last_ns = max(scan_time_ns(snapshot, time.time_ns()), self._last_ns + 1)
        with self._lock:
            self._write(lambda writer: writer.add_snapshot(snapshot, time_ns))
            self.figures.snapshots += not self.problem
        self._last = snapshot
        self._add_notables(time_ns)
        self._measure()

    def _add_notables(self, time_ns: int) -> None:
        """Append the moments that the last snapshot and the ring records since then show."""
        assert self._last is not None
        with self._lock:
            long_waits, self._long_waits = self._long_waits, None
        notables = self._notable_moments.find(self._last, time_ns, long_waits)
        if notables:
            with self._lock:
                self._write(lambda writer: writer.add_notables(notables, time_ns))

    def add_mark(self, mark: Notable) -> None:
        """Append a mark of the user. Any thread may call this."""
        with self._lock:
            self._write(lambda writer: writer.add_notables([mark], time.time_ns()))

    def finish(self, reason: str) -> None:
        """Append the ring records that are left, and end the file."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        if self._drain is not None:
            self._drain_rest(self._drain)
            self._drain.close()
        if self._long_waits is not None:
            self._add_notables(time.time_ns())
        with self._lock:
            self._write(lambda writer: writer.finish(reason, time.time_ns()))
            self._measure()
            self._is_finished = True
            if self._writer is not None:
                self._writer.close()

    def _begin(self, snapshot: Snapshot) -> None:
        info = RecordingInfo.from_snapshot(snapshot, __version__)
        self._drain = self._source.drain()
        try:
            self._writer = self._destination.open(info, time.time_ns())
        except BaseException:
            if self._drain is not None:
                self._drain.close()
                self._drain = None
            raise
        self._began = time.monotonic()
        if self._drain is not None:
            self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
            self._thread.start()

    def _measure(self) -> None:
        if self._writer is not None and not self.problem:
            self.figures.duration_s = time.monotonic() - self._began
            self.figures.size = self._writer.size
            if isinstance(self._writer, SegmentWriter):
                self.figures.kept_s = self._writer.kept_s

    def _write(self, write: Callable[[Writer], None]) -> None:
        """Call ``write`` with the writer, unless the recording has ended."""
        if self._writer is None or self.problem or self._is_finished:
            return
        try:
            write(self._writer)
        except LocktopError as error:
            self.problem = str(error)
            self._stopped.set()

    # ---- ring records ----

    def _run(self) -> None:
        assert self._drain is not None
        while not self._stopped.is_set() and self._take(self._drain, _BATCH_S):
            pass

    def _drain_rest(self, drain: RingDrain) -> None:
        for _ in range(_LAST_CALLS):
            if not self._take(drain, 0.0) or not drain.has_more:
                return

    def _take(self, drain: RingDrain, within_s: float) -> bool:
        """Add the ring records of ``within_s`` seconds; return whether to go on."""
        try:
            self._add_slots(drain.take(within_s))
        except LocktopError:
            pass  # the next scan reports the damage, and another program may follow
        # A recording that lacks all later records must not end as if it were whole.
        except Exception as error:
            self.problem = f"the recording ends here: {type(error).__name__}: {error}"
            return False
        return True

    def _add_slots(self, drained: Drained) -> None:
        slots = drained.slots
        if slots.is_empty:
            return
        with self._lock:
            self._write(lambda writer: writer.add_slots(slots))
            if not self.problem:
                self.figures.records += slots.packed
                self.figures.lost += slots.lost
            if drained.long_waits.records:
                before = self._long_waits.records if self._long_waits is not None else b""
                records = (before + drained.long_waits.records)[-_MAX_LONG_BYTES:]
                # One clock: the later batch tells the times of both.
                self._long_waits = slot_batch.replace_records(slots, records)
