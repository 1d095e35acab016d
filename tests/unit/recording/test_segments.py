"""A ring of segments: what stays, and that all segments read as one recording."""

from __future__ import annotations

import errno
import itertools
import os
import random
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.thoroughness import some
from unit.recording.test_recording import scans

from locktop.collector.errors import LocktopError
from locktop.collector.model import Notable, NotableKind
from locktop.collector.recording.recording import Recording
from locktop.collector.recording.recording_info import RecordingInfo
from locktop.collector.recording.segments import (
    LEAST_BYTES,
    SegmentedRecording,
    SegmentWriter,
    open_recording,
)

_SECOND = 1_000_000_000
_BEGIN = 1_790_000_000 * _SECOND


def write(path: Path, count: int, noise: int = 0, **limits: float) -> SegmentWriter:
    """Write a ring with a scan in each second, each with so many random bytes."""
    made, chosen = scans(count), random.Random(1)
    writer = SegmentWriter(path, RecordingInfo.from_snapshot(made[0], "1.0"), _BEGIN, **limits)  # type: ignore[arg-type]
    for number, snapshot in enumerate(made):
        noisy = replace(snapshot, notes=(chosen.randbytes(noise).hex(),))
        writer.add_snapshot(noisy, _BEGIN + number * _SECOND)
        mark = Notable(_BEGIN + number * _SECOND, NotableKind.MARK, str(number))
        writer.add_notables([mark], mark.time_ns)
    return writer


def names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


def test_the_bytes_are_bounded_and_the_newest_stay(tmp_path: Path) -> None:
    writer = write(tmp_path / "r", 400, noise=10_000, max_bytes=LEAST_BYTES)
    writer.finish("over", _BEGIN + 400 * _SECOND)
    size = sum(entry.stat().st_size for entry in (tmp_path / "r").iterdir())
    assert LEAST_BYTES / 2 < size <= LEAST_BYTES + 1000
    opened = open_recording(tmp_path / "r")
    assert opened.damage == ""
    seconds = [(time_ns - _BEGIN) // _SECOND for time_ns in opened.times_ns()]
    assert seconds == list(range(seconds[0], 400))
    first = scans(1)[0].duration_s
    assert [opened.snapshot_at(t).duration_s - first for t in opened.times_ns()] == seconds
    assert [int(one.text) for one in opened.notables()] == seconds


def test_a_disk_that_is_full_at_any_write_leaves_what_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each write of ten snapshots in two segments fails in turn."""
    real_write = os.write
    for failing in itertools.count():
        writes = itertools.count()

        def full(fd: int, data: bytes, failing: int = failing, writes: count[int] = writes) -> int:
            if next(writes) >= failing:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real_write(fd, data)

        path = tmp_path / str(failing)
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", full)
            try:
                write(path, 10, keep_s=40.0).finish("over", _BEGIN)
            except LocktopError as error:
                said = str(error)
            else:
                break
        if path.exists():
            assert said.startswith(f"{path}: no space left on device; make room there;")
            assert open_recording(path).times_ns()
        else:
            assert said == f"{path}: cannot be made: no space left on device; make room there"
    assert failing > 20


def test_the_newest_seconds_stay(tmp_path: Path) -> None:
    write(tmp_path / "r", 400, keep_s=80.0).close()
    first = (open_recording(tmp_path / "r").times_ns()[0] - _BEGIN) // _SECOND
    assert 399 - 80 - 11 <= first <= 399 - 80


def test_each_segment_is_a_whole_recording(tmp_path: Path) -> None:
    write(tmp_path / "r", 100, keep_s=80.0).finish("over", _BEGIN + 100 * _SECOND)
    for number, name in enumerate(names(tmp_path / "r"), start=1):
        part = Recording(tmp_path / "r" / name)
        assert part.info.segment >= number
        assert name == f"{part.info.segment:06}.locktop"
        assert part.damage == ""
        assert part.snapshot_at(0).process.pid


def test_a_ring_whose_newest_segment_was_cut_off_opens(tmp_path: Path) -> None:
    write(tmp_path / "r", 100, keep_s=80.0).close()
    newest = tmp_path / "r" / names(tmp_path / "r")[-1]
    whole = newest.read_bytes()
    for size in some(range(len(whole)), 150):
        newest.write_bytes(whole[:size])
        opened = open_recording(tmp_path / "r")
        assert 80 <= len(opened.times_ns()) <= 90
        assert opened.snapshot_at(opened.times_ns()[-1]).process.pid
        opened.close()


def test_a_directory_without_segments_is_no_recording(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(LocktopError, match="no recording"):
        open_recording(tmp_path)


def test_an_existing_directory_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(LocktopError, match="there already"):
        write(tmp_path, 1, keep_s=1.0)


def test_segments_of_one_number_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "r", 100, keep_s=80.0).close()
    first = tmp_path / "r" / names(tmp_path / "r")[0]
    (tmp_path / "r" / "999999.locktop").write_bytes(first.read_bytes())
    with pytest.raises(LocktopError, match="damaged"):
        SegmentedRecording(tmp_path / "r")


def test_a_file_is_opened_as_a_file(tmp_path: Path) -> None:
    write(tmp_path / "r", 3, keep_s=80.0).close()
    assert isinstance(open_recording(tmp_path / "r" / "000001.locktop"), Recording)
