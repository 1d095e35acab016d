"""The memory of a live screen: what it keeps, and what it forgets first."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace
from unit.recording.test_recording import scans

from locktop.collector.errors import LocktopError
from locktop.collector.model import Notable, NotableKind
from locktop.collector.recording.history import LEAST_BYTES, History

_SECOND = 1_000_000_000


def test_every_snapshot_comes_back_in_any_order() -> None:
    history, made = History(), scans(150)
    for number, snapshot in enumerate(made):
        history.add(snapshot, number * _SECOND)
    times = list(history.times_ns())
    assert len(times) == len(made)
    random.Random(3).shuffle(times)
    assert all(history.at(time_ns) == made[time_ns // _SECOND] for time_ns in times)


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
    assert history.at(history.times_ns()[0]).duration_s > scans(1)[0].duration_s


def test_notable_moments_are_sorted_by_time() -> None:
    history = History()
    late, early = (Notable(at, NotableKind.MARK, "m") for at in (9, 3))
    history.add(scans(1)[0], 1, notables=[late])
    history.add_notable(early)
    assert history.notables() == [early, late]


def test_an_empty_history_has_no_snapshot() -> None:
    with pytest.raises(LocktopError, match="no snapshot"):
        History().at(5)
