"""The memory as a recording: the file has all that the memory has."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.shared_file import record
from unit.recording.test_recording import scans

from locktop.collector.model import Notable, NotableKind
from locktop.collector.recording.history import History
from locktop.collector.recording.memory_file import save_recording
from locktop.collector.recording.recording import Recording
from locktop.collector.recording.time_lines import TimeLineReader
from locktop.collector.render.files import NotWrittenError
from locktop.collector.shm.slot_batch import SlotBatch

_SECOND = 1_000_000_000
_BEGIN = 1_790_000_000 * _SECOND


def _history(count: int) -> History:
    history = History()
    for number, snapshot in enumerate(scans(count)):
        time_ns = _BEGIN + number * _SECOND
        ticks = (number + 10) * _SECOND
        raw = record(tid=7, lock=1, start=ticks - 1000, wait=500, stack=number)
        slots = SlotBatch(ticks=ticks, time_ns=time_ns, hz=1e9, lost=0, records=raw)
        notable = Notable(time_ns - 5, NotableKind.MARK, f"m{number}")
        history.add(snapshot, time_ns, slots, [notable] if number % 50 == 0 else [])
    return history


def test_the_file_has_all_that_the_memory_has(tmp_path: Path) -> None:
    history = _history(200)
    path = save_recording(history, tmp_path)
    recording = Recording(path)
    assert not recording.damage
    assert list(recording.times_ns()) == list(history.times_ns())
    moments = [history.snapshot_at(at) for at in recording.times_ns()]
    assert [recording.snapshot_at(at) for at in recording.times_ns()] == moments
    assert list(recording.notables()) == list(history.notables())
    whole = (0, _BEGIN + 1000 * _SECOND)
    assert len(history.records(*whole)) == 200
    assert list(recording.records(*whole)) == list(history.records(*whole))
    recording.close()


def test_the_file_knows_the_losses_of_the_memory(tmp_path: Path) -> None:
    history = _history(10)
    ticks, time_ns = 30 * _SECOND, _BEGIN + 20 * _SECOND
    history.add_slots(SlotBatch(ticks=ticks, time_ns=time_ns, hz=1e9, lost=77, records=b""))
    recording = Recording(save_recording(history, tmp_path))
    assert recording.lost_records(_BEGIN, _BEGIN + 100 * _SECOND) == 77
    for begin in range(21):
        for end in range(begin + 1, 23):
            span = (_BEGIN + begin * _SECOND, _BEGIN + end * _SECOND)
            assert recording.lost_records(*span) == history.lost_records(*span), (begin, end)
    recording.close()


def test_a_mark_of_the_user_is_in_the_time_line_and_in_the_file(tmp_path: Path) -> None:
    history, time_ns = _history(10), _BEGIN + 5 * _SECOND
    mark = Notable(time_ns, NotableKind.MARK, "your mark 1")
    history.add_mark(mark)
    assert mark in TimeLineReader(history).read(_BEGIN, _BEGIN + 9 * _SECOND).notables
    recording = Recording(save_recording(history, tmp_path))
    assert mark in recording.notables()
    recording.close()


def test_a_second_file_has_another_name(tmp_path: Path) -> None:
    history = _history(3)
    first, second = save_recording(history, tmp_path), save_recording(history, tmp_path)
    assert first != second
    assert first.read_bytes() == second.read_bytes()


def test_an_empty_memory_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotWrittenError, match="no snapshot yet"):
        save_recording(History(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotWrittenError, match="cannot be made"):
        save_recording(_history(3), tmp_path / "gone")
