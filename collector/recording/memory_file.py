"""The memory of a live process as a recording, for another day or another machine."""

from __future__ import annotations

import os
import time
from pathlib import Path

from locktop import __version__
from locktop.collector.errors import LocktopError
from locktop.collector.recording.history import History, Loss
from locktop.collector.recording.recording_info import RecordingInfo
from locktop.collector.recording.recording_writer import RecordingWriter
from locktop.collector.recording.slot_store import PackedSlots
from locktop.collector.recording.snapshot_chain import Link
from locktop.collector.render.files import NotWrittenError
from locktop.collector.render.rendered_files import snapshot_name
from locktop.collector.shm.slot_batch import SlotBatch

SUFFIX = ".recording"
_TRIES = 1000


def save_recording(history: History, directory: Path | None = None) -> Path:
    """Save the memory to a new file, and return its path.

    Args:
        history: the memory.
        directory: the directory of the file; None for the working directory.

    Raises:
        NotWrittenError: nothing is kept yet, or the file cannot be written.
    """
    root = directory or Path.cwd()
    try:
        name = snapshot_name(history.snapshot_at(time.time_ns()), "")
    except LocktopError as error:
        raise NotWrittenError(str(error)) from None
    for number in range(1, _TRIES):
        path = root / (f"{name}{SUFFIX}" if number == 1 else f"{name}-{number}{SUFFIX}")
        if not os.path.lexists(path):
            write_recording(history, path)
            return path
    raise NotWrittenError(f"{root}: too many files called {name}*")


def write_recording(history: History, path: Path) -> None:
    """Write the memory to a file that does not exist yet.

    The packed parts are copied as they are, which takes little time.

    Raises:
        NotWrittenError: the file cannot be written. Then there is none.
    """
    try:
        kept = history.kept()
        first_ns = kept.snapshots[0][0]
        info = RecordingInfo.from_snapshot(history.snapshot_at(first_ns), __version__)
        writer = RecordingWriter(path, info, first_ns)
    except (LocktopError, IndexError) as error:
        reason = str(error) if isinstance(error, LocktopError) else "nothing is kept yet"
        raise NotWrittenError(reason) from None
    frames: list[tuple[int, Link | PackedSlots | SlotBatch]] = list(kept.snapshots)
    frames += [(batch.time_ns, batch) for batch in kept.slots]
    frames += [(loss.to_ns, _only_lost(loss)) for loss in kept.losses]
    try:
        for time_ns, part in sorted(frames, key=lambda frame: frame[0]):
            if isinstance(part, Link):
                writer.add_link(part, time_ns)
            elif isinstance(part, SlotBatch):
                writer.add_slots(part)
            else:
                writer.add_packed_slots(part)
        last_ns = max(time_ns for time_ns, _ in frames)
        newest = history.newest
        if newest is not None and newest.time_ns > last_ns:
            # The newest scan has the names that earlier snapshots lack.
            last_ns = newest.time_ns
            writer.add_snapshot(newest.snapshot, last_ns)
        if kept.notables:
            writer.add_notables(kept.notables, last_ns)
        writer.finish("the memory was saved", last_ns)
    except LocktopError as error:
        writer.close()
        path.unlink(missing_ok=True)
        raise NotWrittenError(str(error)) from None


def _only_lost(loss: Loss) -> SlotBatch:
    """Return a batch without records; ``first`` is the begin of the loss, in nanoseconds."""
    return SlotBatch(
        ticks=loss.to_ns,
        time_ns=loss.to_ns,
        hz=1e9,
        lost=loss.count,
        records=b"",
        first=loss.from_ns,
    )
