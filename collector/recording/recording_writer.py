"""Writes a recording: frames are appended, and a frame is whole or not there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from locktop.collector.errors import LocktopError
from locktop.collector.model import Notable, Snapshot
from locktop.collector.recording import frame_format, snapshot_payload
from locktop.collector.recording.frame_format import FILE_HEADER, MAGIC, VERSION, FrameType
from locktop.collector.recording.frame_index import TRAILER, TRAILER_WORD, IndexEntry, IndexPart
from locktop.collector.recording.recording_info import RecordingInfo
from locktop.collector.recording.slot_store import PackedSlots
from locktop.collector.recording.snapshot_chain import ChainPacker, Link
from locktop.collector.render.files import words
from locktop.collector.shm import slot_batch
from locktop.collector.shm.slot_batch import SlotBatch

#: Frames of one part of the index.
_PART = 64
#: Notable moments of one frame. Each has a text of 200 characters at most. So these
#: frames stay below MAX_PLAIN bytes.
_MOMENTS = 1000


class RecordingEndedError(LocktopError):
    """The file can take no more. Its frames are readable. A file without a snapshot is removed."""

    def __init__(self, path: Path, error: OSError, has_snapshot: bool) -> None:
        """``has_snapshot``: whether the recording has a snapshot."""
        self.error = error
        reason = f"cannot be made: {words(error)}"
        if has_snapshot:
            reason = f"{words(error)}; the recording ends here and can be read up to this moment"
        super().__init__(f"{path}: {reason}")


class RecordingWriter:
    """Writes one file. The methods raise RecordingEndedError when the disk is full."""

    def __init__(self, path: Path, info: RecordingInfo, time_ns: int) -> None:
        """Make the file.

        Raises:
            LocktopError: there is such a file.
            RecordingEndedError: the file cannot be made.
        """
        self.path = path
        #: Whether the file has a snapshot.
        self.has_snapshot = False
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._fd = os.open(path, flags, 0o600)
        except FileExistsError:
            raise LocktopError(f"{path} is there already; give another FILE") from None
        except OSError as error:
            raise RecordingEndedError(path, error, False) from None
        self.size = 0  # bytes written
        self._packer = ChainPacker()
        self._entries: list[IndexEntry] = []
        self._newest_ns = {True: 0, False: 0}  # of the snapshots, of the other frames
        self._part_at = 0
        try:
            self._append(FILE_HEADER.pack(MAGIC, VERSION, 0))
            self._add(FrameType.INFO, msgspec.msgpack.encode(info), None, time_ns)
        except BaseException:
            self._remove()
            raise

    def add_snapshot(self, snapshot: Snapshot, time_ns: int) -> None:
        """Append a snapshot; ``time_ns``: nanoseconds since 1970, UTC."""
        link = self._packer.link(snapshot_payload.encode(snapshot))
        self._add(link.type, link.packed, link.unpacked, time_ns)

    def add_link(self, link: Link, time_ns: int) -> None:
        """Append a snapshot of a chain that somebody else has packed, in the order of the chain."""
        self._packer.begin_anew()
        self._add(link.type, link.packed, link.unpacked, time_ns)

    def add_packed_slots(self, slots: PackedSlots) -> None:
        """Append ring records that are packed already."""
        self._add(FrameType.SLOTS, slots.packed, slots.unpacked, slots.time_ns, slots.first_ns)

    def add_slots(self, slots: SlotBatch) -> None:
        """Append ring records, packed."""
        slots = slot_batch.pack(slots)
        data = msgspec.msgpack.encode(slots)
        first_ns = slot_batch.first_ns(slots)
        self._add(FrameType.SLOTS, frame_format.packed(data), len(data), slots.time_ns, first_ns)

    def add_notables(self, notables: Iterable[Notable], time_ns: int) -> None:
        """Append notable moments, in several frames if there are many."""
        all_notables = list(notables)
        for first in range(0, len(all_notables), _MOMENTS):
            payload = msgspec.msgpack.encode(all_notables[first : first + _MOMENTS])
            self._add(FrameType.NOTABLES, payload, None, time_ns)

    def finish(self, reason: str, time_ns: int) -> None:
        """Append why the recording ends, and the rest of the index; close the file."""
        if self._fd < 0:
            return
        try:
            self._add(FrameType.END, msgspec.msgpack.encode(reason), None, time_ns)
            self._add_index(time_ns)
            self._append(TRAILER.pack(self._part_at, TRAILER_WORD))
        finally:
            self.close()

    def _remove(self) -> None:
        """Close and remove a file of which nothing could be read."""
        if self._fd >= 0:
            self.close()
            with contextlib.suppress(OSError):
                self.path.unlink()

    def close(self) -> None:
        """Close the file as it is."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _add(
        self,
        type_: FrameType,
        payload: bytes,
        unpacked: int | None,
        time_ns: int,
        first_ns: int = 0,
    ) -> None:
        whole = len(payload) if unpacked is None else unpacked
        if whole > frame_format.MAX_UNPACKED or len(payload) > frame_format.MAX_STORED:
            raise LocktopError(f"a frame of {whole} bytes is too large for a recording")
        is_snapshot = type_ in (FrameType.KEY, FrameType.CHANGE)
        # Readers search by time. The clock may be set back meanwhile. A snapshot may be older than
        # ring records before it: its scan goes on after the reading of the process.
        time_ns = self._newest_ns[is_snapshot] = max(time_ns, self._newest_ns[is_snapshot])
        entry = IndexEntry(self.size, type_, len(payload), whole, time_ns, first_ns)
        self._append(frame_format.pack(type_, payload, whole, time_ns))
        self.has_snapshot = self.has_snapshot or is_snapshot
        if type_ is FrameType.INDEX:
            return
        self._entries.append(entry)
        if len(self._entries) >= _PART:
            self._add_index(time_ns)

    def _add_index(self, time_ns: int) -> None:
        part = IndexPart(before=self._part_at, frames=tuple(self._entries))
        offset = self.size
        self._add(FrameType.INDEX, msgspec.msgpack.encode(part), None, time_ns)
        self._part_at, self._entries = offset, []

    def _append(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._fd, left) :]
        except OSError as error:
            with contextlib.suppress(OSError):  # readers leave half a frame out, too
                os.ftruncate(self._fd, self.size)  # no half frame stays
            if not self.has_snapshot:
                self._remove()
            raise RecordingEndedError(self.path, error, self.has_snapshot) from None
        self.size += len(data)
