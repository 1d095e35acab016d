"""Reads a recording, which may come from a stranger or may be cut off at any byte."""

from __future__ import annotations

import contextlib
import itertools
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from locktop.collector.errors import LocktopError, reason_of
from locktop.collector.model import MarkRecord, Notable, SignalRecord, Snapshot, WaitRecord
from locktop.collector.recording import frame_format, frame_scan, snapshot_payload
from locktop.collector.recording.file_pool import FilePool, PooledFile
from locktop.collector.recording.frame_format import (
    FILE_HEADER,
    HEADER_SIZE,
    MAGIC,
    MAX_STORED,
    VERSION,
    FrameHeader,
    FrameType,
)
from locktop.collector.recording.frame_index import TRAILER, TRAILER_WORD, IndexEntry, IndexPart
from locktop.collector.recording.history import Loss
from locktop.collector.recording.later_names import LaterNames
from locktop.collector.recording.recording_info import RecordingInfo
from locktop.collector.recording.snapshot_chain import MAX_BYTES, MAX_LINKS, Link, unpack_last
from locktop.collector.sanitize import clean
from locktop.collector.shm import slot_batch
from locktop.collector.shm.slot_batch import SlotBatch

_T = TypeVar("_T")
#: A file up to this size is checked whole when it is opened: the checksums of all its frames.
CHECKED_WHOLE = 64 << 20
#: Notable moments that count, and ring records of one call.
_MAX_NOTABLES, _MAX_RECORDS = 10_000, 1 << 22
#: The most bytes of a batch without records.
_MAX_LOSS_BYTES = 64
#: Times of ring records that a date can have, nanoseconds since 1970.
_MAX_NS = 1 << 62
_TEXTS = ("locktop", "host", "comm", "source", "began_at")
_SNAPSHOTS = (FrameType.KEY, FrameType.CHANGE)


class Recording:
    """One file, open for reading. See Moments for the reading methods."""

    def __init__(self, path: Path, pool: FilePool | None = None) -> None:
        """Open the file and read its index.

        Args:
            path: the file.
            pool: closes the file while other files of the pool are read; None: a pool of its own.

        Raises:
            LocktopError: the file is no recording, or of a version that is not known.
        """
        self.path = path
        try:
            self._file = PooledFile(path, pool or FilePool())
        except OSError as error:
            raise self._broken(reason_of(error)) from None
        try:
            self._size = self._file.size
            #: The fault of the file, "" for none. Frames behind the fault are left out.
            self.damage = ""
            self._check_version()
            self._index(self._read_index() or self._whole_frames())
            self.info = self._read_info()
        except BaseException:
            self.close()
            raise
        self._last: tuple[int, bytes] | None = None  # number and payload of the last snapshot
        self._names = LaterNames(self.times_ns, self.recorded_snapshot_at)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def times_ns(self) -> Sequence[int]:
        return self._times

    def snapshot_at(self, time_ns: int) -> Snapshot:
        return self._names.apply(self.recorded_snapshot_at(time_ns), time_ns)

    def recorded_snapshot_at(self, time_ns: int) -> Snapshot:
        """Return the snapshot with the names of its time alone."""
        if not self._times:
            raise self._broken("there is no snapshot in it")
        number = max(0, bisect_right(self._times, time_ns) - 1)
        return snapshot_payload.decode(self._payload(number))

    def notables(self) -> Sequence[Notable]:
        return self._names.reword(self.notables_as_recorded())

    def notables_as_recorded(self) -> list[Notable]:
        """Return the alerts and marks with the names of their time alone."""
        notables: list[Notable] = []
        for entry in self._notable_frames:
            with contextlib.suppress(LocktopError):  # the others are still of use
                notables += self._decode(self._read_payload(entry), list[Notable])
                del notables[:-_MAX_NOTABLES]
        valid = [notable for notable in notables if 0 <= notable.time_ns <= _MAX_NS]
        cleaned = [replace(notable, text=clean(notable.text)) for notable in valid]
        return sorted(cleaned, key=lambda notable: notable.time_ns)

    def records(self, from_ns: int, to_ns: int) -> Sequence[WaitRecord]:
        records: list[WaitRecord] = []
        for batch in self.batches(from_ns, to_ns):
            records += [
                record
                for record in slot_batch.decode_span(batch, from_ns, to_ns)
                if record.began_ns >= 0 and record.end_ns <= _MAX_NS
            ]
            self._check_count(len(records))
        return sorted(records, key=lambda record: record.began_ns)

    def signals(self, from_ns: int, to_ns: int) -> Sequence[SignalRecord]:
        signals: list[SignalRecord] = []
        for batch in self.batches(from_ns, to_ns):
            signals += slot_batch.decode_signals(batch, max(from_ns, 0), min(to_ns, _MAX_NS))
            self._check_count(len(signals))
        return sorted(signals, key=lambda signal: signal.time_ns)

    def marks(self, from_ns: int, to_ns: int) -> Sequence[MarkRecord]:
        marks: list[MarkRecord] = []
        for batch in self.batches(from_ns, to_ns):
            marks += slot_batch.decode_marks(batch, max(from_ns, 0), min(to_ns, _MAX_NS))
            self._check_count(len(marks))
        return sorted(marks, key=lambda mark: mark.time_ns)

    def _check_count(self, count: int) -> None:
        if count > _MAX_RECORDS:
            raise self._broken("too many ring records; choose a shorter time")

    def batches(self, from_ns: int, to_ns: int) -> Iterator[SlotBatch]:
        """See HasBatches."""
        # A batch has records from before its copy, so later batches may touch the span, too.
        for entry in self._slot_frames[bisect_right(self._slot_times, from_ns - 1) :]:
            if entry.first_ns >= to_ns:
                continue
            data = frame_format.unpack(self._read_payload(entry), entry.unpacked)
            yield self._decode(data, SlotBatch)

    def lost_records(self, from_ns: int, to_ns: int) -> int:
        """Return how many ring records of a span were overwritten before they could be copied.

        A loss counts at the time of its batch. If the batch names the begin of the loss, the share
        of the loss that lies in the span counts.

        Raises:
            LocktopError: the records are damaged.
        """
        begin, end = bisect_right(self._slot_times, from_ns), bisect_right(self._slot_times, to_ns)
        # A loss of the span may be in a later batch.
        later = [entry for entry in self._small_frames if entry.time_ns > to_ns > entry.first_ns]
        losses = map(self._loss, [*self._slot_frames[begin:end], *later])
        return sum(loss.count_in(from_ns, to_ns) for loss in losses)

    def _loss(self, entry: IndexEntry) -> Loss:
        """Return the loss of a batch."""
        data = frame_format.unpack(self._read_payload(entry), entry.unpacked)
        batch = self._decode(data, SlotBatch)
        begin_ns = 0 if batch.records or batch.marks else slot_batch.first_ns(batch)
        from_ns = min(begin_ns or entry.time_ns, entry.time_ns - 1)
        return Loss(from_ns, entry.time_ns, max(0, batch.lost))

    # ---- frames ----

    def _payload(self, number: int) -> bytes:
        last = self._last  # once: another thread may read another snapshot meanwhile
        first, before = number, None
        while self._snapshots[first].type != FrameType.KEY:
            if last is not None and last[0] == first:
                break
            first -= 1
            if first < 0:
                raise self._broken("it begins in the middle")
        if last is not None and last[0] == first:
            first, before = first + 1, last[1]
        links = (
            Link(FrameType(entry.type), self._read_payload(entry), entry.unpacked)
            for entry in self._snapshots[first : number + 1]
        )
        payload = before if before is not None and first > number else unpack_last(links, before)
        self._last = number, payload
        return payload

    def _read_payload(self, entry: IndexEntry) -> bytes:
        """Return the stored payload of a frame, with its checksum checked."""
        if not 0 <= entry.stored <= MAX_STORED:
            raise self._broken("damaged: the index names a frame of an impossible size")
        data = self._read(entry.offset, HEADER_SIZE + entry.stored)
        head, payload = data[:HEADER_SIZE], data[HEADER_SIZE:]
        try:
            header = frame_format.parse_header(head)
            if header != FrameHeader(
                entry.type, entry.stored, entry.unpacked, entry.time_ns, header.checksum
            ):
                raise LocktopError("damaged: the index names another frame")
            frame_format.check(header, head, payload)
        except LocktopError as error:
            raise self._broken(f"{error}, at byte {entry.offset}") from None
        return payload

    def _decode(self, data: bytes, type_: type[_T]) -> _T:
        try:
            return msgspec.msgpack.decode(data, type=type_)
        except (msgspec.MsgspecError, RecursionError, ValueError, MemoryError) as error:
            raise self._broken(f"damaged: {error}") from None

    def _read(self, offset: int, size: int) -> bytes:
        if offset < 0 or offset + size > self._size:
            raise self._broken("damaged: a frame lies behind its end")
        data = self._read_some(size, offset)
        if len(data) != size:
            raise self._broken("it became shorter while it was read")
        return data

    def _read_some(self, size: int, offset: int) -> bytes:
        try:
            return self._file.read(size, offset)
        except OSError as error:
            raise self._broken(reason_of(error)) from None

    def _broken(self, reason: str) -> LocktopError:
        return LocktopError(f"{self.path}: {reason}")

    # ---- opening ----

    def _check_version(self) -> None:
        head = self._read_some(FILE_HEADER.size, 0)
        if not head:
            raise self._broken("an empty file")
        if len(head) < FILE_HEADER.size or head[: len(MAGIC)] != MAGIC:
            raise self._broken("not a recording of locktop")
        _, version, zero = FILE_HEADER.unpack(head)
        if version == VERSION and zero:
            raise self._broken("damaged: the header of the file is wrong")
        if version != VERSION:
            raise self._broken(
                f"a recording of version {version}; this locktop reads version {VERSION}"
            )

    def _read_index(self) -> list[IndexEntry]:
        """Return the frames that the index names; none without a sound index."""
        if self._size <= CHECKED_WHOLE or self._size < TRAILER.size:
            return []
        offset, word = TRAILER.unpack(self._read(self._size - TRAILER.size, TRAILER.size))
        if word != TRAILER_WORD:
            return []
        parts: list[IndexPart] = []
        count = 0
        try:
            while offset:
                part = self._index_part(offset)
                count += len(part.frames)
                if part.before >= offset or not part.frames or count > frame_scan.MAX_FRAMES:
                    return []
                parts.append(part)
                offset = part.before
        except LocktopError:
            return []
        return [entry for part in reversed(parts) for entry in part.frames]

    def _index_part(self, offset: int) -> IndexPart:
        header = frame_format.parse_header(self._read(offset, HEADER_SIZE))
        if header.type != FrameType.INDEX:
            raise self._broken("damaged: no index where one should be")
        entry = IndexEntry(offset, header.type, header.stored, header.unpacked, header.time_ns)
        return self._decode(self._read_payload(entry), IndexPart)

    def _whole_frames(self) -> list[IndexEntry]:
        """Return the whole frames from the begin to the first damaged one."""
        scanned = frame_scan.scan(self._read_some, self._size, checks=self._size <= CHECKED_WHOLE)
        self.damage = scanned.damage
        return self._add_first_times(scanned.frames)

    def _add_first_times(self, frames: list[IndexEntry]) -> list[IndexEntry]:
        """Take IndexEntry.first_ns, which no header has, from the parts of the index."""
        offsets = {entry.offset for entry in frames if entry.type == FrameType.SLOTS}
        first_ns: dict[int, int] = {}
        count = 0
        for index in frames:
            if index.type != FrameType.INDEX or count > frame_scan.MAX_FRAMES:
                continue
            with contextlib.suppress(LocktopError):  # it only makes reading quicker
                part = self._decode(self._read_payload(index), IndexPart)
                count += len(part.frames)
                first_ns |= {
                    entry.offset: entry.first_ns for entry in part.frames if entry.offset in offsets
                }
        return [
            replace(entry, first_ns=first_ns[entry.offset]) if entry.offset in first_ns else entry
            for entry in frames
        ]

    def _index(self, frames: Sequence[IndexEntry]) -> None:
        self._snapshots = self._chained_entries(
            [entry for entry in frames if entry.type in _SNAPSHOTS]
        )
        self._times = [entry.time_ns for entry in self._snapshots]
        self._slot_frames = [entry for entry in frames if entry.type == FrameType.SLOTS]
        self._slot_times = [entry.time_ns for entry in self._slot_frames]
        self._small_frames = [
            entry for entry in self._slot_frames if entry.unpacked <= _MAX_LOSS_BYTES
        ]
        self._notable_frames = [entry for entry in frames if entry.type == FrameType.NOTABLES]
        self._infos = [entry for entry in frames[:1] if entry.type == FrameType.INFO]
        self._ends = [entry for entry in frames if entry.type == FrameType.END]
        if any(a > b for a, b in itertools.pairwise(self._times)):
            raise self._broken("damaged: its times go back")

    def _chained_entries(self, frames: list[IndexEntry]) -> list[IndexEntry]:
        """Return the snapshots up to the first one that is in no chain as a writer makes chains."""
        links = size = 0
        for number, entry in enumerate(frames):
            if entry.type == FrameType.KEY:
                links = size = 0
            elif not 0 < links < MAX_LINKS or size + entry.unpacked > MAX_BYTES:
                reason = "is too long" if links else "has no begin"
                self.damage = (
                    f"damaged at byte {entry.offset}: a chain of snapshots {reason};"
                    " later ones are left out"
                )
                return frames[:number]
            links, size = links + 1, size + entry.unpacked
        return frames

    def _read_info(self) -> RecordingInfo:
        if not self._infos:
            raise self._broken("nothing of it can be read: it was cut off or is damaged")
        info = self._decode(self._read_payload(self._infos[0]), RecordingInfo)
        texts = {name: clean(getattr(info, name)) for name in _TEXTS}
        return replace(info, **texts)
