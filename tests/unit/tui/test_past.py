"""Where in the past the screen is: steps, jumps, times and the player."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pytest
from msgspec.structs import replace
from unit.builders import scenarios

from locktop.collector.model import Notable, NotableKind, Snapshot, WaitRecord
from locktop.collector.recording.history import History
from locktop.collector.recording.moments import EarlierWaits
from locktop.tui.past import SPEEDS, Past
from locktop.tui.views.past_flag import clock_text, span_text

_SECOND = 1_000_000_000
_BEGIN = 1_790_000_000 * _SECOND


class _Moments:
    """A hundred snapshots, one each second, with alerts and marks at the given seconds."""

    def __init__(self, *notables: Notable, count: int = 100) -> None:
        self.kept: Sequence[Notable] = notables
        self.count = count

    def times_ns(self) -> Sequence[int]:
        return [_at(second) for second in range(self.count)]

    def snapshot_at(self, time_ns: int) -> Snapshot:
        return scenarios.normal()

    def notables(self) -> Sequence[Notable]:
        return sorted(self.kept, key=lambda one: one.time_ns)

    def records(self, from_ns: int, to_ns: int) -> Sequence[WaitRecord]:
        return ()


def _at(second: float) -> int:
    return _BEGIN + round(second * _SECOND)


def _mark(second: float, text: str = "m", kind: NotableKind = NotableKind.MARK) -> Notable:
    return Notable(_at(second), kind, text)


def _second(past: Past) -> float | None:
    return None if past.time_ns is None else (past.time_ns - _BEGIN) / _SECOND


def test_a_live_screen_steps_from_now_and_returns_to_now() -> None:
    past = Past(_Moments())
    assert _second(past) is None
    assert past.position(_at(200)) is None
    seconds = [(past.step(count), _second(past)) for count in (-1, -1, 1, 1, 1)]
    assert seconds == [("", 98), ("", 97), ("", 98), ("", None), ("", None)]


def test_the_oldest_moment_is_the_last_step_back() -> None:
    past = Past(_Moments(count=3))
    assert [past.step(-1), past.step(-1)] == ["", ""]
    assert past.step(-1) == "This is the oldest moment."
    assert _second(past) == 0


def test_new_snapshots_move_nothing() -> None:
    moments = _Moments()
    past = Past(moments)
    past.step(-10)
    moments.count += 50
    assert _second(past) == 89
    past.step(1)
    assert _second(past) == 90


def test_a_replay_begins_at_the_begin_and_never_leaves_it() -> None:
    past = Past(_Moments(), is_replay=True)
    assert _second(past) == 0
    past.to_newest()
    assert _second(past) == 99
    assert past.step(1) == "This is the last moment."
    past.to_oldest()
    assert _second(past) == 0


def test_jumps_visit_each_alert_and_mark_and_say_why() -> None:
    stuck = _mark(40, "deadlock of 2 threads", NotableKind.DEADLOCK)
    past = Past(_Moments(_mark(20.5, "deploy"), stuck, _mark(20.7, "again")))
    said = [past.jump(-1) for _ in range(4)]
    assert said[0] == f"{clock_text(_at(40))}  deadlock of 2 threads"
    assert [text.partition("  ")[2] for text in said[1:3]] == ["again", "deploy"]
    assert said[3] == "There is no alert or mark before this."
    assert _second(past) == 20
    position = past.position(_at(99))
    assert position is not None
    assert position.reason == "deploy"
    past.jump(1)
    past.jump(1)
    assert _second(past) == 40
    assert past.jump(1) == "There is no alert or mark after this."


@pytest.mark.parametrize(
    ("known", "more"),
    [
        (EarlierWaits.KNOWN, ""),
        (EarlierWaits.OVERWRITTEN, " Older records were overwritten."),
        (EarlierWaits.UNRECORDED, " Earlier waits have no records."),
    ],
)
def test_the_first_moment_says_what_is_not_known_before(known: EarlierWaits, more: str) -> None:
    history = History()
    history.add(scenarios.normal(), _at(0))
    history.earlier_waits = known
    past = Past(history)
    assert past.jump(-1) == f"There is no alert or mark before this.{more}"
    past.mark(_at(0))
    past.jump(-1)
    assert past.jump(-1) == f"There is no alert or mark before this.{more}"
    assert past.jump(1) == "There is no alert or mark after this."


def test_the_reason_gets_the_name_that_its_lock_has_by_now() -> None:
    alert = Notable(time_ns=_at(5), kind=NotableKind.WAIT, text="waited for mutex 0x7", lock=7)
    moments = _Moments(alert)
    past = Past(moments)
    past.jump(-1)
    moments.kept = [replace(alert, text="waited for g_cache")]
    position = past.position(_at(100))
    assert position is not None
    assert position.reason == "waited for g_cache"


def test_a_step_leaves_the_reason_behind() -> None:
    past = Past(_Moments(_mark(20)))
    past.jump(-1)
    past.step(1)
    position = past.position(_at(99))
    assert position is not None
    assert position.reason == ""


def test_a_wait_that_is_over_is_visible_while_it_went_on() -> None:
    past = Past(_Moments(_mark(30.25, "worker waited", NotableKind.WAIT)))
    past.jump(-1)
    assert _second(past) == 30
    found_by_a_scan = Past(_Moments(_mark(30, "worker waits", NotableKind.WAIT)))
    found_by_a_scan.jump(-1)
    assert _second(found_by_a_scan) == 30


def test_an_alert_before_the_first_snapshot_says_how_long_before() -> None:
    past = Past(_Moments(_mark(-30, "worker waited", NotableKind.WAIT)))
    text = past.jump(-1)
    assert text.startswith("This is the oldest moment. 30 s before: ")
    assert text.endswith("worker waited")
    position = past.position(_at(200))
    assert position is not None
    assert position.reason == "Oldest moment; 30 s before: worker waited"
    assert _second(past) == 0


def test_the_marks_of_the_user_are_visited_too() -> None:
    past = Past(_Moments())
    assert past.mark(_at(99.5)).startswith("Mark 1 at ")
    past.step(-20)
    past.mark(_at(100))
    past.to_newest()
    past.jump(-1)
    past.jump(-1)
    assert _second(past) == 79


def test_a_mark_of_the_user_belongs_to_the_memory_and_to_the_recording_beside() -> None:
    history, passed = History(), list[Notable]()
    history.mark_listener = passed.append
    for second in range(10):
        history.add(scenarios.normal(), _at(second))
    past = Past(history)
    past.step(-4)
    past.mark(_at(9.5))
    past.to_newest()
    past.mark(_at(9.5))
    assert past.notables() == history.notables() == passed
    assert [one.text for one in history.notables()] == ["your mark 1", "your mark 2"]
    past.go_to("mark:1")
    assert _second(past) == 5


def test_a_mark_in_a_replay_is_found_although_the_file_stays() -> None:
    past = Past(_Moments(), is_replay=True)
    past.step(30)
    past.mark(_at(99))
    past.to_oldest()
    past.jump(1)
    assert _second(past) == 30


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("-35s", 64), ("+10s", 10), ("+1m", 60), ("50%", 49), ("100 %", 99), ("+500ms", 0),
        ("-1h", 0), ("+1.5m", 90),
    ],
)  # fmt: skip
def test_a_time_is_found(text: str, second: int) -> None:
    past = Past(_Moments())
    past.go_to(text)
    assert _second(past) == second


def test_a_time_of_day_is_local_and_means_the_whole_second() -> None:
    past = Past(_Moments())
    for second in (0, 17, 99):
        local = datetime.fromtimestamp(_at(second) // _SECOND)
        assert past.go_to(f"{local:%H:%M:%S}") == ""
        assert _second(past) == second


def test_a_time_of_no_moment_leads_to_the_last_or_first() -> None:
    past = Past(_Moments(), is_replay=True)
    assert past.go_to("+100h") == f"The newest moment is {clock_text(_at(99))}."
    assert _second(past) == 99
    assert past.go_to("-100h") == f"The oldest moment is {clock_text(_at(0))}."
    assert _second(past) == 0
    assert past.go_to("100%") == ""


def test_an_alert_is_found_by_its_number() -> None:
    past = Past(_Moments(_mark(20, kind=NotableKind.DEADLOCK), _mark(30, kind=NotableKind.WAIT)))
    past.go_to("alert:2")
    assert _second(past) == 30
    assert past.go_to("alert:3") == "there is no alert 3; there are 2."


@pytest.mark.parametrize("text", ["x", "25:00", "12:61", "10", "-", "5%%", "+3y", "9" * 50 + "s"])
def test_another_text_is_no_time(text: str) -> None:
    past = Past(_Moments())
    assert "is no time" in past.go_to(text)
    assert _second(past) is None


def test_the_player_goes_as_fast_as_its_speed_and_ends_at_now() -> None:
    past = Past(_Moments())
    past.go_to("+10s")
    past.play_or_pause()
    assert past.is_playing
    assert [past.tick(0.4), past.tick(0.4), past.tick(0.4)] == [False, False, True]
    assert _second(past) == 11
    past.faster(2)
    assert past.speed == 4
    past.tick(1.0)
    assert _second(past) == 15
    past.faster(100)
    assert past.speed == SPEEDS[-1]
    past.tick(1.0)
    past.tick(1.0)
    assert _second(past) is None
    assert not past.is_playing


def test_a_replay_stops_at_its_end_and_plays_again_from_the_begin() -> None:
    past = Past(_Moments(), is_replay=True)
    past.play_or_pause()
    past.tick(1000)
    assert (_second(past), past.is_playing) == (99, False)
    past.play_or_pause()
    assert (_second(past), past.is_playing) == (0, True)
    past.play_or_pause()
    assert not past.is_playing


def test_without_a_memory_each_key_says_so() -> None:
    past = Past(None)
    for said in (past.step(-1), past.jump(1), past.go_to("50%"), past.to_oldest(), past.mark(1)):
        assert said == "Nothing is kept: --history 0 says so."
    assert Past(_Moments(count=0)).step(-1) == "Nothing is kept yet."


def test_spans_are_in_whole_seconds() -> None:
    spans = [span_text(seconds * _SECOND) for seconds in (0, 35, 65, 3600 * 3 + 300)]
    assert spans == ["0 s", "35 s", "1 min 05 s", "3 h 05 min"]
