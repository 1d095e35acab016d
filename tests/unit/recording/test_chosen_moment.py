"""The times that --at, --from and --to take."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace
from unit.builders import scenarios

from locktop.collector.errors import LocktopError
from locktop.collector.model import Notable, NotableKind, Snapshot
from locktop.collector.recording.chosen_moment import (
    snapshot_at,
    span_between,
    times_between,
)
from locktop.collector.recording.history import History

_NS = 1_000_000_000
#: 23:59:30 in New York, in winter.
_BEGIN = datetime(2026, 11, 24, 4, 59, 30, 250_000, tzinfo=UTC)
_COUNT = 121


@pytest.fixture(autouse=True)
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def moments(notables: Sequence[Notable] = (), count: int = _COUNT) -> History:
    """Two minutes with a scan in each second; the recorder notes each 2 ms after its begin."""
    history, made = History(), scenarios.normal()
    for number in range(count):
        began = _BEGIN + timedelta(seconds=number)
        taken = f"{began:%Y-%m-%dT%H:%M:%S}.{began.microsecond // 1000:03}Z"
        ns = round(began.timestamp()) * _NS + 252_000_000
        snapshot = replace(made, taken_at=taken, duration_s=float(number))
        history.add(snapshot, ns, notables=[one for one in notables if not number])
    return history


def number_of(snapshot: Snapshot) -> int:
    return round(snapshot.duration_s)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (None, 120),
        ("23:59:30", 0),
        ("23:59:31.9", 1),
        ("00:00:00", 30),
        ("0:00", 89),  # that minute
        ("00:01:30.249", 119),
        ("00:01:30.25", 120),
        ("00:01:31", 120),
        ("2026-11-24T05:00:00.250Z", 30),
        ("2026-11-24T05:00:00.249Z", 29),
        ("2026-11-24 00:00:01", 31),
        ("2026-11-24T06:00:01+01:00", 31),
        ("-35s", 85),
        ("-1500ms", 118),
        ("-0s", 120),
        ("50%", 60),
        ("99.5 %", 119),
        ("+10s", 10),
        ("+1.5m", 90),
        ("+0s", 0),
    ],
)
def test_a_text_names_the_newest_snapshot_at_that_time(text: str | None, number: int) -> None:
    assert number_of(snapshot_at(moments(), text)) == number


def test_the_time_of_each_snapshot_names_that_snapshot() -> None:
    recording = moments()
    for time_ns in recording.times_ns():
        found = recording.snapshot_at(time_ns)
        assert snapshot_at(recording, found.taken_at) == found


@pytest.mark.parametrize(
    "text", ["12:00:00", "-3m", "+3m", "150%", "2026-11-24T05:02:00Z", "2025-11-24T05:00:00Z"]
)
def test_a_time_not_recorded_gives_its_span(text: str) -> None:
    with pytest.raises(LocktopError) as error:
        snapshot_at(moments(), text)
    assert "121 snapshots, from 2026-11-23 23:59:30 to 2026-11-24 00:01:30" in str(error.value)


@pytest.mark.parametrize("text", ["100.5%", "101 %", "150%", "999%"])
def test_a_share_above_all_of_a_short_recording_is_refused(text: str) -> None:
    short = moments(count=2)
    with pytest.raises(LocktopError, match="outside of the recording"):
        snapshot_at(short, text)
    assert number_of(snapshot_at(short, "100%")) == 1


@pytest.mark.parametrize(
    "text", ["", "x", "25:00:00", "-", "5", "+1d", "alert:x", "9" * 99, "T", "0001-01-01T00:00:00"]
)
def test_a_text_that_names_no_time_is_refused(text: str) -> None:
    with pytest.raises(LocktopError, match=r"is no time|outside"):
        snapshot_at(moments(), text)


def test_an_alert_and_a_mark_are_named_by_number() -> None:
    first = moments().times_ns()[0]
    notables = [
        Notable(first - 5 * _NS, NotableKind.WAIT, "before the first scan"),
        Notable(first + 7 * _NS, NotableKind.MARK, "deploy"),
        Notable(first + 9 * _NS, NotableKind.DEADLOCK, "a and b"),
        Notable(first + 11 * _NS, NotableKind.ENDED, "over"),
    ]
    recording = moments(notables)
    names = ("alert", "alert:1", "alert:2", "mark")
    assert [number_of(snapshot_at(recording, name)) for name in names] == [0, 0, 9, 7]
    with pytest.raises(LocktopError, match="there is no alert 3; there are 2"):
        snapshot_at(recording, "alert:3")
    with pytest.raises(LocktopError, match="there is no mark 2; there is 1"):
        snapshot_at(recording, "mark:2")
    with pytest.raises(LocktopError, match="there is no alert 1; there is none"):
        snapshot_at(moments(), "alert")
    with pytest.raises(LocktopError, match="no mark 0"):
        snapshot_at(recording, "mark:0")


@pytest.mark.parametrize("counted_s", [0.5, 90.0])
def test_a_span_over_an_exec_has_the_figures_of_the_last_program(counted_s: float) -> None:
    """The counters began anew, whether the new ones are smaller or not."""
    recording, made = History(), scenarios.normal()
    for number, (since, duration_s) in enumerate((("04:59", 60.0), ("05:01", counted_s)), 1):
        process = replace(made.process, counted_since=f"2026-11-24T{since}:00.000Z")
        after = replace(made, process=process, duration_s=duration_s)
        recording.add(after, number * _NS)
    span = span_between(recording, None, None)
    assert span.figures().locks == after.locks
    assert span.figures().duration_s == counted_s
    assert span.snapshot.notes[-1].startswith("the process executed ")


def test_a_span_has_the_snapshots_at_both_ends() -> None:
    recording = moments()
    for begin, end, numbers in (
        ("+10s", "-10s", (10, 110)),
        (None, "+5s", (0, 5)),
        ("-5s", None, (115, 120)),
    ):
        span = span_between(recording, begin, end)
        assert span.before is not None
        assert (number_of(span.before), number_of(span.snapshot)) == numbers
        assert number_of(span.figures()) == numbers[1] - numbers[0]
        times = times_between(recording, begin, end)
        assert len(times) == numbers[1] - numbers[0] + 1


@pytest.mark.parametrize(("begin", "end"), [("-5s", "+5s"), ("+5s", "+5s"), ("-0s", None)])
def test_a_span_without_two_snapshots_is_refused(begin: str, end: str | None) -> None:
    with pytest.raises(LocktopError, match="there are 121 snapshots"):
        span_between(moments(), begin, end)


def test_an_empty_recording_has_no_moment() -> None:
    with pytest.raises(LocktopError, match="no snapshot"):
        snapshot_at(History(), None)
