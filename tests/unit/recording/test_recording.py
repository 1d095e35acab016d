"""A recording: written and read back, cut off at any byte, damaged at any byte."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from support.shared_file import mark, record
from support.thoroughness import some
from unit.builders import scenarios

from locktop.collector.errors import LocktopError
from locktop.collector.model import Notable, NotableKind, Snapshot
from locktop.collector.recording import frame_format, frame_scan, snapshot_payload
from locktop.collector.recording import recording as recording_module
from locktop.collector.recording.frame_format import FrameType
from locktop.collector.recording.frame_index import TRAILER, TRAILER_WORD, IndexPart
from locktop.collector.recording.recording import Recording
from locktop.collector.recording.recording_info import RecordingInfo
from locktop.collector.recording.recording_writer import RecordingWriter
from locktop.collector.recording.segments import open_recording
from locktop.collector.shm.slot_batch import SlotBatch

_SECOND = 1_000_000_000
_BEGIN = 1_790_000_000 * _SECOND
_NOTABLE = Notable(_BEGIN + 3 * _SECOND, NotableKind.MARK, "deploy")


def scans(count: int) -> list[Snapshot]:
    """Scans of one process that goes on: each differs a little from the one before."""
    made = scenarios.deadlock()
    return [replace(made, duration_s=made.duration_s + number) for number in range(count)]


def write(path: Path, made: list[Snapshot], is_ended: bool = True) -> Path:
    """Write a recording with a scan in each second."""
    writer = RecordingWriter(path, RecordingInfo.from_snapshot(made[0], "1.0"), _BEGIN)
    for number, snapshot in enumerate(made):
        writer.add_snapshot(snapshot, _BEGIN + number * _SECOND)
    writer.add_notables([_NOTABLE], _NOTABLE.time_ns)
    if is_ended:
        writer.finish("the process has ended", _BEGIN + len(made) * _SECOND)
    else:
        writer.close()
    return path


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Recording]:
    """A recording of 100 scans."""
    opened = Recording(write(tmp_path / "r", scans(100)))
    yield opened
    opened.close()


def test_every_snapshot_comes_back(recording: Recording) -> None:
    times, made = recording.times_ns(), scans(100)
    assert [recording.snapshot_at(time_ns) for time_ns in times] == made
    assert [recording.snapshot_at(time_ns) for time_ns in reversed(times)] == made[::-1]


class ReadByOthers(Recording):
    """A recording of which other threads read snapshots between any two steps of this one."""

    chosen = random.Random(7)
    others: Sequence[tuple[int, bytes]] = ()

    @property
    def _last(self) -> tuple[int, bytes] | None:
        return self.chosen.choice(self.others) if self.others else None

    @_last.setter
    def _last(self, value: tuple[int, bytes] | None) -> None:
        assert value is None or value[1]


def test_another_thread_may_read_between_any_two_steps(tmp_path: Path) -> None:
    made = scans(100)
    recording = ReadByOthers(write(tmp_path / "r", made))
    recording.others = [(at, snapshot_payload.encode(made[at])) for at in (2, 20, 21, 80, 81)]
    for number in (3, 4, 22, 23, 81, 82, 83, 90) * 20:
        assert recording.snapshot_at(recording.times_ns()[number]) == made[number]
    recording.close()


def test_a_time_between_two_snapshots_gives_the_one_before(recording: Recording) -> None:
    assert recording.snapshot_at(_BEGIN + 5 * _SECOND // 2) == scans(3)[2]
    assert recording.snapshot_at(0) == scans(1)[0]


def test_notable_moments_come_back(recording: Recording) -> None:
    assert recording.notables() == [_NOTABLE]


def test_thousands_of_notable_moments_come_back(tmp_path: Path) -> None:
    many = [Notable(_BEGIN + n, NotableKind.WAIT, "\U0001f512" * 200) for n in range(3000)]
    writer = RecordingWriter(
        tmp_path / "r", RecordingInfo.from_snapshot(scans(1)[0], "1.0"), _BEGIN
    )
    writer.add_notables(many, _BEGIN)
    writer.add_snapshot(scans(1)[0], _BEGIN)
    writer.finish("the process has ended", _BEGIN)
    opened = Recording(tmp_path / "r")
    assert opened.notables() == many
    assert (len(opened.times_ns()), opened.damage) == (1, "")
    opened.close()


def test_a_recording_that_was_cut_off_opens_up_to_the_last_whole_frame(tmp_path: Path) -> None:
    made = scans(20)
    data = write(tmp_path / "whole", made, is_ended=False).read_bytes()
    cut = tmp_path / "cut"
    counts = []
    for size in some(range(len(data)), 300):
        cut.write_bytes(data[:size])
        try:
            opened = Recording(cut)
        except LocktopError:
            counts.append(-1)
            continue
        counts.append(len(opened.times_ns()))
        assert [opened.snapshot_at(time_ns) for time_ns in opened.times_ns()] == made[: counts[-1]]
        opened.close()
    assert counts == sorted(counts)
    assert counts[-1] == len(made)


def test_a_damaged_byte_leaves_the_frames_before_or_gives_an_error(tmp_path: Path) -> None:
    made = scans(8)
    data = write(tmp_path / "whole", made).read_bytes()
    chosen = random.Random(5)
    for at in some(range(len(data)), 300):
        damaged = bytearray(data)
        damaged[at] ^= 1 << chosen.randrange(8)
        (tmp_path / "damaged").write_bytes(damaged)
        try:
            opened = Recording(tmp_path / "damaged")
        except LocktopError:
            continue
        times = opened.times_ns()
        assert [opened.snapshot_at(time_ns) for time_ns in times] == made[: len(times)]
        assert len(times) == len(made) or opened.damage
        opened.close()


@pytest.mark.parametrize("content", [b"", b"{}", b"LOCKTOP\n", b"LOCKTOP\n\x01\0\0\0"])
def test_other_files_are_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(LocktopError, match=r"recording|cut off|empty"):
        Recording(tmp_path / "other")


def test_a_later_version_is_refused_by_its_number(tmp_path: Path) -> None:
    data = bytearray(write(tmp_path / "r", scans(1)).read_bytes())
    data[8] = 9
    (tmp_path / "later").write_bytes(data)
    with pytest.raises(LocktopError, match="version 9; this locktop reads version 1"):
        Recording(tmp_path / "later")


def test_a_damaged_header_is_no_other_version(tmp_path: Path) -> None:
    data = bytearray(write(tmp_path / "r", scans(1)).read_bytes())
    data[10] = 1
    (tmp_path / "damaged").write_bytes(data)
    with pytest.raises(LocktopError, match="damaged: the header of the file is wrong"):
        Recording(tmp_path / "damaged")


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("mine")
    with pytest.raises(LocktopError, match="there already"):
        write(tmp_path / "r", scans(1))
    assert (tmp_path / "r").read_text() == "mine"


# ---- ring records ----


def write_slots(path: Path, is_ended: bool = True) -> Path:
    """Write a batch in each of 200 seconds, with a wait that began a second before, for 0.4 s.

    The wait in the batch of the last second began at second 5.
    """
    writer = RecordingWriter(path, RecordingInfo.from_snapshot(scans(1)[0], "1.0"), _BEGIN)
    for second in range(1, 201):
        ticks = second * _SECOND
        began = 5 * _SECOND if second == 200 else ticks - _SECOND
        wait = ticks - began - 6 * _SECOND // 10
        slot = record(tid=second, kind=1, start=began, wait=wait)
        writer.add_slots(SlotBatch(ticks, _BEGIN + ticks, 1e9, 0, slot))
    if is_ended:
        writer.finish("over", _BEGIN + 201 * _SECOND)
    else:
        writer.close()
    return path


@pytest.mark.parametrize("is_ended", [True, False])
def test_a_span_has_all_records_that_touch_it(tmp_path: Path, is_ended: bool) -> None:
    recording = Recording(write_slots(tmp_path / "r", is_ended))

    def tids(from_s: float, to_s: float) -> list[int]:
        span = (_BEGIN + round(from_s * _SECOND), _BEGIN + round(to_s * _SECOND))
        return [one.tid for one in recording.records(*span)]

    assert tids(0, 1000) == [*range(1, 7), 200, *range(7, 200)]
    assert tids(3, 4.2) == [4, 5]
    assert tids(3.5, 3.9) == []
    assert tids(5, 5.1) == [6, 200]
    assert tids(150.1, 150.2) == [200, 151]
    assert tids(199.5, 300) == []


@pytest.mark.parametrize("is_segmented", [True, False])
def test_the_marks_of_a_span_come_back(tmp_path: Path, is_segmented: bool) -> None:
    """Without records, the first time of a batch with marks is no begin of a loss."""
    path = tmp_path / ("r" if not is_segmented else "000001.locktop")
    info = RecordingInfo.from_snapshot(scans(1)[0], "1.0")
    writer = RecordingWriter(path, info, _BEGIN)
    writer.add_snapshot(scans(1)[0], _BEGIN)
    for second in range(1, 9):
        ticks = second * _SECOND
        raw = mark(second, ticks - _SECOND // 2, b"commit")
        first, lost = ticks - _SECOND // 2, 7 if second == 4 else 0
        slots = SlotBatch(ticks, _BEGIN + ticks, 1e9, lost, b"", marks=raw, first=first)
        writer.add_slots(slots)
    writer.finish("over", _BEGIN + 9 * _SECOND)
    found = open_recording(tmp_path if is_segmented else path)
    marks = found.marks(_BEGIN + 2 * _SECOND, _BEGIN + 4 * _SECOND)
    assert [(one.tid, one.text) for one in marks] == [(3, "commit"), (4, "commit")]
    assert marks[0].time_ns == _BEGIN + 2 * _SECOND + _SECOND // 2
    found.close()


def test_later_ring_records_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = Recording(write_slots(tmp_path / "r"))
    read, pread = [], os.pread

    def counted(descriptor: int, size: int, offset: int) -> bytes:
        read.append(offset)
        return pread(descriptor, size, offset)

    monkeypatch.setattr(os, "pread", counted)
    recording.records(_BEGIN + 10 * _SECOND, _BEGIN + 11 * _SECOND)
    assert len(read) <= 3


def test_a_disk_that_is_full_at_once_keeps_no_file_and_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = os.listdir("/proc/self/fd")
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(LocktopError, match="no space left on device"):
            RecordingWriter(tmp_path / "r", RecordingInfo.from_snapshot(scans(1)[0], "1.0"), _BEGIN)
    assert os.listdir("/proc/self/fd") == before
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("stored", [-frame_format.HEADER_SIZE - 1, -1, frame_format.MAX_STORED + 1])
def test_an_index_with_an_impossible_size_gives_an_error_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: int
) -> None:
    """A large file is read by its index alone, which a stranger may have written."""
    monkeypatch.setattr(recording_module, "CHECKED_WHOLE", 0)
    path = write(tmp_path / "r", scans(2), is_ended=False)
    size = path.stat().st_size
    with path.open("rb") as file:
        frames = frame_scan.scan(
            lambda count, at: os.pread(file.fileno(), count, at), size, True
        ).frames
    forged = [replace(one, stored=stored) if one.type == FrameType.KEY else one for one in frames]
    index = msgspec.msgpack.encode(IndexPart(before=0, frames=tuple(forged)))
    with path.open("ab") as file:
        file.write(frame_format.pack(FrameType.INDEX, index, len(index), _BEGIN))
        file.truncate(size + (200 << 20))  # so that no frame lies behind the end of the file
        file.seek(0, os.SEEK_END)
        file.write(TRAILER.pack(size, TRAILER_WORD))
    opened = Recording(path)
    with pytest.raises(LocktopError, match="a frame of an impossible size"):
        opened.snapshot_at(_BEGIN)
    opened.close()
