"""The memory of a live screen: what it keeps, and what it forgets first."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace
from support.shared_file import mark, record
from unit.recording.test_recording import scans

from locktop.collector.errors import LocktopError
from locktop.collector.model import Notable, NotableKind, Snapshot
from locktop.collector.recording.history import LEAST_BYTES, History
from locktop.collector.recording.past_events import newest_of_each
from locktop.collector.recording.time_lines import TooManyRecordsError
from locktop.collector.shm.slot_batch import SlotBatch

_SECOND = 1_000_000_000
_BEGIN = 1_790_000_000 * _SECOND


def _at(second: float) -> int:
    return _BEGIN + round(second * _SECOND)


def test_every_snapshot_comes_back_in_any_order() -> None:
    history, made = History(), scans(150)
    for number, snapshot in enumerate(made):
        history.add(snapshot, number * _SECOND)
    times = list(history.times_ns())
    assert len(times) == len(made)
    random.Random(3).shuffle(times)
    assert all(history.snapshot_at(time_ns) == _kept(made[time_ns // _SECOND]) for time_ns in times)


def _kept(snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, events=newest_of_each(snapshot.events))


def test_older_seconds_than_the_span_are_forgotten() -> None:
    history = History(span_s=100)
    for number, snapshot in enumerate(scans(400)):
        history.add(snapshot, number * _SECOND)
    first = history.times_ns()[0] // _SECOND
    assert 400 - 100 - 64 <= first <= 400 - 100


def test_the_bytes_are_bounded() -> None:
    history, chosen = History(LEAST_BYTES), random.Random(4)
    largest = 0
    for number, snapshot in enumerate(scans(300)):
        noise = chosen.randbytes(10_000).hex()
        history.add(replace(snapshot, notes=(noise,)), number * _SECOND)
        largest = max(largest, history.size)
    assert LEAST_BYTES / 4 < history.size <= LEAST_BYTES
    assert history.snapshot_at(history.times_ns()[0]).duration_s > scans(1)[0].duration_s


def test_notable_moments_are_sorted_by_time() -> None:
    history = History()
    late, early = (Notable(at, NotableKind.MARK, "m") for at in (9, 3))
    history.add(scans(1)[0], 1, notables=[late])
    history.add_notable(early)
    assert history.notables() == [early, late]


def test_an_empty_history_has_no_snapshot() -> None:
    with pytest.raises(LocktopError, match="no snapshot"):
        History().snapshot_at(5)


def _slots(second: float, count: int, lost: int = 0) -> SlotBatch:
    """Return a batch with so many waits of a tenth of a second each, the last of them now."""
    ticks = round(second * _SECOND) + _SECOND
    raw = b"".join(record(tid=7, start=ticks - 10**8 - at, wait=10**8) for at in range(count))
    time_ns = _at(second)
    return SlotBatch(ticks=ticks, time_ns=time_ns, hz=1e9, lost=lost, records=raw)


def test_lost_records_are_those_of_the_span_in_which_they_were_lost() -> None:
    history = History()
    assert history.lost_records(0, 1 << 62) is None
    for second, lost in ((1, 0), (2, 100), (4, 50), (5, 0)):
        history.add_slots(_slots(second, 3, lost))
    spans = {(1, 2): 100, (2, 4): 50, (3, 4): 25, (4, 6): 0, (0, 9): 150, (3.999, 4.2): 1}
    for (begin, end), lost in spans.items():
        assert history.lost_records(_at(begin), _at(end)) == lost
    assert len(history.records(0, 1 << 62)) == 12


def test_records_that_the_memory_forgets_count_as_lost() -> None:
    history = History(LEAST_BYTES)
    for second in range(40):
        history.add_slots(_noise(second, 5000))
    kept = len(history.records(0, 1 << 62))
    assert 0 < kept < 40 * 5000
    assert history.lost_records(0, 1 << 62) == 40 * 5000 - kept
    assert history.lost_records(_at(0), _at(1)) > 0
    assert history.lost_records(_at(39), _at(40)) == 0


def _noise(second: int, count: int) -> SlotBatch:
    """Return a batch that packs badly."""
    ticks, chosen = second * _SECOND + _SECOND, random.Random(second)
    raw = b"".join(
        record(tid=7, lock=chosen.getrandbits(31), start=ticks - chosen.getrandbits(20), wait=9)
        for _ in range(count)
    )
    return SlotBatch(ticks=ticks, time_ns=_at(second), hz=1e9, lost=0, records=raw)


def test_more_records_than_one_reading_may_have_are_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The records of a stranger's stream may pack to nearly nothing."""
    monkeypatch.setattr("locktop.collector.recording.history.MAX_RECORDS", 100)
    history = History()
    for second in range(9):
        history.add_slots(_slots(second, 20))
    assert len(history.records(_at(0), _at(2))) == 41
    with pytest.raises(TooManyRecordsError, match="choose a shorter one") as caught:
        history.records(_at(0), _at(8))
    assert caught.value.span_ns == _SECOND


def _marks(second: float, count: int) -> SlotBatch:
    """Return a batch with so many marks, the last of them now, a nanosecond apart."""
    ticks = round(second * _SECOND) + _SECOND
    raw = b"".join(mark(7, ticks - at, b"commit") for at in range(count))
    first = ticks - count + 1
    return SlotBatch(ticks, _at(second), 1e9, 0, b"", marks=raw, first=first)


def test_marks_come_back_in_the_order_of_time() -> None:
    history = History()
    for second in (1, 2, 3):
        history.add_slots(_marks(second, 5))
    times = [one.time_ns for one in history.marks(_at(1.5), _at(2.5))]
    assert times == [_at(2) - at for at in (4, 3, 2, 1, 0)]
    assert len(history.marks(0, 1 << 62)) == 15
    assert not history.records(0, 1 << 62)
    assert history.lost_records(0, 1 << 62) == 0


def test_marks_that_the_memory_forgets_count_as_lost() -> None:
    history = History(LEAST_BYTES)
    for second in range(40):
        chosen = random.Random(second)
        texts = (chosen.randbytes(44) for _ in range(1000))
        raw = b"".join(mark(7, second * _SECOND + at, text) for at, text in enumerate(texts))
        ticks, first = (second + 1) * _SECOND, second * _SECOND
        history.add_slots(SlotBatch(ticks, _at(second), 1e9, 0, b"", marks=raw, first=first))
    kept = len(history.marks(0, 1 << 62))
    assert 0 < kept < 40 * 1000
    assert history.lost_records(0, 1 << 62) == 40 * 1000 - kept


def test_records_at_impossible_times_are_left_out() -> None:
    history = History()
    strange = record(tid=7, start=5, wait=(1 << 64) - 1) + record(tid=8, start=5, wait=1)
    history.add_slots(SlotBatch(ticks=10, time_ns=20, hz=1.0, lost=0, records=strange))
    history.add_slots(_slots(1, 3))
    assert len(history.records(0, 1 << 62)) == 3
