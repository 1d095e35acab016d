"""A recording as a ring of segments: a directory of whole recordings, the oldest deleted first."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.errors import LocktopError, reason_of
from locktop.collector.model import MarkRecord, Notable, SignalRecord, Snapshot, WaitRecord
from locktop.collector.recording.file_pool import FilePool
from locktop.collector.recording.later_names import LaterNames
from locktop.collector.recording.recording import Recording
from locktop.collector.recording.recording_info import RecordingInfo
from locktop.collector.recording.recording_writer import RecordingEndedError, RecordingWriter
from locktop.collector.shm.slot_batch import SlotBatch

#: A ring has some nine segments: so much of the limit is one segment.
_PART = 8
#: The limit of one segment in any case, bytes.
_MOST_BYTES = 256 << 20
#: The least bytes of a ring: a whole snapshot of a large process must fit into each segment.
LEAST_BYTES = 1 << 20
_NAME = re.compile(r"\d{6,9}\.locktop")
_MAX_SEGMENTS = 10_000
#: Faults that the line about the damage has.
_MAX_FAULTS = 3


class _Segment(Struct):
    path: Path
    size: int  # bytes
    end_ns: int  # the last moment


class SegmentWriter:
    """Writes a directory of segments. The methods are those of RecordingWriter."""

    def __init__(
        self,
        path: Path,
        info: RecordingInfo,
        time_ns: int,
        max_bytes: int | None = None,
        keep_s: float | None = None,
    ) -> None:
        """Make the directory and its first segment.

        Args:
            path: the directory, which does not exist yet.
            info: of all segments, but for the number.
            time_ns: nanoseconds since 1970.
            max_bytes: the limit of all segments together; None: no limit.
            keep_s: how far back the ring goes at least, seconds; None: no limit.

        Raises:
            LocktopError: the directory cannot be made.
        """
        self.path = path
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            raise LocktopError(f"{path} is there already; give another FILE") from None
        except OSError as error:
            raise LocktopError(f"{path}: cannot be made: {reason_of(error)}") from None
        self._info = info
        self._max_bytes = max_bytes
        self._keep_ns = round(keep_s * 1e9) if keep_s is not None else None
        self._part_bytes = min(_MOST_BYTES, max_bytes // _PART if max_bytes else _MOST_BYTES)
        self._before: deque[_Segment] = deque()
        self._number = self._newest_ns = 0
        self._deleted_to_ns = 0  # where the last deleted segment ended; 0: none is deleted
        self._has_snapshot = False
        with self._name_directory():
            self._begin(time_ns)

    @property
    def size(self) -> int:
        """The bytes that the segments take now."""
        return sum(segment.size for segment in self._before) + self._writer.size

    @property
    def kept_s(self) -> float | None:
        """The seconds that the segments have; None if no segment was deleted."""
        return (self._newest_ns - self._deleted_to_ns) / 1e9 if self._deleted_to_ns else None

    def add_snapshot(self, snapshot: Snapshot, time_ns: int) -> None:
        """Append a snapshot, in a new segment if the present one is full."""
        if self._is_full(time_ns):
            with self._name_directory():
                self._end("the recording goes on in the next segment", time_ns)
                self._begin(time_ns)
        self._append(lambda writer: writer.add_snapshot(snapshot, time_ns), time_ns)
        self._has_snapshot = True

    def add_slots(self, slots: SlotBatch) -> None:
        """Append ring records."""
        self._append(lambda writer: writer.add_slots(slots), slots.time_ns)

    def add_notables(self, notables: Iterable[Notable], time_ns: int) -> None:
        """Append notable moments."""
        self._append(lambda writer: writer.add_notables(notables, time_ns), time_ns)

    def finish(self, reason: str, time_ns: int) -> None:
        """End the last segment."""
        with self._name_directory():
            self._writer.finish(reason, time_ns)

    def close(self) -> None:
        """Close the last segment as it is."""
        self._writer.close()

    def _append(self, add: Callable[[RecordingWriter], None], time_ns: int) -> None:
        self._newest_ns = max(self._newest_ns, time_ns)
        with self._name_directory():
            add(self._writer)
        self._delete_old()

    @contextlib.contextmanager
    def _name_directory(self) -> Iterator[None]:
        """Let an error of a segment name the directory, which has no segment without a snapshot."""
        try:
            yield
        except RecordingEndedError as error:
            if not self._has_snapshot:
                with contextlib.suppress(OSError):
                    self.path.rmdir()
            raise RecordingEndedError(self.path, error.error, self._has_snapshot) from None

    def _is_full(self, time_ns: int) -> bool:
        if self._writer.size >= self._part_bytes:
            return True
        return self._keep_ns is not None and time_ns - self._began_ns >= self._keep_ns // _PART

    def _begin(self, time_ns: int) -> None:
        self._number += 1
        self._began_ns = time_ns
        path = self.path / f"{self._number:06}.locktop"
        self._writer = RecordingWriter(path, replace(self._info, segment=self._number), time_ns)

    def _end(self, reason: str, time_ns: int) -> None:
        self._writer.finish(reason, time_ns)
        self._before.append(_Segment(self._writer.path, self._writer.size, time_ns))

    def _delete_old(self) -> None:
        """Delete whole segments that the limits do not allow any more."""
        while self._before and self._is_one_too_many():
            with contextlib.suppress(OSError):
                self._before[0].path.unlink()
            self._deleted_to_ns = self._before.popleft().end_ns

    def _is_one_too_many(self) -> bool:
        if self._max_bytes is not None and self.size > self._max_bytes:
            return True
        oldest_ns = self._newest_ns - self._keep_ns if self._keep_ns is not None else 0
        return self._before[0].end_ns < oldest_ns


class SegmentedRecording:
    """All segments of a directory as one recording. See Moments for the reading methods."""

    def __init__(self, path: Path) -> None:
        """Open the segments, a few at a time.

        A segment that has no snapshot, because it was cut off at its begin, is left out.

        Raises:
            LocktopError: no segment can be read, or one is of an unknown version.
        """
        self.path = path
        self._parts: list[Recording] = []
        pool = FilePool()
        faults: list[str] = []
        try:
            for name in _segment_names(path):
                try:
                    part = Recording(path / name, pool)
                except LocktopError as error:
                    faults.append(str(error))
                    continue
                self._parts.append(part)
                if part.damage:
                    faults.append(f"{name}: {part.damage}")
            self._parts.sort(key=lambda part: part.info.segment)
            self._index(faults)
        except BaseException:
            self.close()
            raise
        self.info = self._parts[0].info
        #: The faults of the segments, "" for none. Frames behind a fault are left out.
        self.damage = "; ".join(faults[:_MAX_FAULTS])
        if len(faults) > _MAX_FAULTS:
            self.damage += f"; and {len(faults) - _MAX_FAULTS} more segments are damaged"

    def _index(self, faults: Sequence[str]) -> None:
        self._begins = [part.times_ns()[0] for part in self._parts if part.times_ns()]
        self._with_snapshots = [part for part in self._parts if part.times_ns()]
        if not self._parts:
            reason = faults[0] if faults else f"{self.path}: no recording is in this directory"
            raise LocktopError(reason)
        times = [time_ns for part in self._parts for time_ns in part.times_ns()]
        if any(a > b for a, b in itertools.pairwise(times)):
            raise LocktopError(f"{self.path}: damaged: the times of its segments go back")
        self._times = times
        self._names = LaterNames(self.times_ns, self._recorded_snapshot)

    def close(self) -> None:
        """Close all files."""
        for part in self._parts:
            part.close()

    def times_ns(self) -> Sequence[int]:
        return self._times

    def snapshot_at(self, time_ns: int) -> Snapshot:
        return self._names.apply(self._recorded_snapshot(time_ns), time_ns)

    def _recorded_snapshot(self, time_ns: int) -> Snapshot:
        if not self._with_snapshots:
            raise LocktopError(f"{self.path}: there is no snapshot in it")
        number = max(0, bisect_right(self._begins, time_ns) - 1)
        return self._with_snapshots[number].recorded_snapshot_at(time_ns)

    def notables(self) -> Sequence[Notable]:
        notables = [notable for part in self._parts for notable in part.notables_as_recorded()]
        return self._names.reword(sorted(notables, key=lambda notable: notable.time_ns))

    def records(self, from_ns: int, to_ns: int) -> Sequence[WaitRecord]:
        records = [record for part in self._parts for record in part.records(from_ns, to_ns)]
        return sorted(records, key=lambda record: record.began_ns)

    def batches(self, from_ns: int, to_ns: int) -> Iterator[SlotBatch]:
        """See HasBatches."""
        for part in self._parts:
            yield from part.batches(from_ns, to_ns)

    def signals(self, from_ns: int, to_ns: int) -> Sequence[SignalRecord]:
        signals = [signal for part in self._parts for signal in part.signals(from_ns, to_ns)]
        return sorted(signals, key=lambda signal: signal.time_ns)

    def marks(self, from_ns: int, to_ns: int) -> Sequence[MarkRecord]:
        marks = [mark for part in self._parts for mark in part.marks(from_ns, to_ns)]
        return sorted(marks, key=lambda mark: mark.time_ns)


def _segment_names(path: Path) -> list[str]:
    try:
        with os.scandir(path) as entries:
            names = sorted(entry.name for entry in entries if _NAME.fullmatch(entry.name))
    except OSError as error:
        raise LocktopError(f"{path}: {reason_of(error)}") from None
    if len(names) > _MAX_SEGMENTS:
        raise LocktopError(f"{path}: more than {_MAX_SEGMENTS} segments")
    return names


#: An open recording: one file, or a directory of segments.
OpenedRecording = Recording | SegmentedRecording


def open_recording(path: Path) -> OpenedRecording:
    """Open a recording: a file, or a directory of segments.

    Raises:
        LocktopError: there is no recording, or none that this version can read.
    """
    return SegmentedRecording(path) if path.is_dir() else Recording(path)
