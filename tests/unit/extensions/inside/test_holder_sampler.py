"""For how much time a sample of a sleeping thread stands."""

from __future__ import annotations

from locktop.collector.extensions.inside.holder_sampler import (
    MAX_READ_PAUSE,
    LastSeen,
    Pause,
    is_due,
    pause_of,
    periods_asleep,
)
from locktop.collector.linux.threads import ThreadMoment

PERIOD_S = 0.01
MS = 1_000_000


def moment(ran_ms: int, queued_ms: int = 0) -> ThreadMoment:
    return ThreadMoment("S", None, (ran_ms * MS, queued_ms * MS, 1))


def asleep(passed_ms: int, periods: int) -> int:
    return periods_asleep(paused(1), passed_ms * MS, periods, PERIOD_S)


def test_a_sample_stands_for_all_periods_since_the_reading_before() -> None:
    assert asleep(60, 6) == 6
    assert asleep(200, 6) == 6
    assert asleep(7, 1) == 1
    assert periods_asleep(None, 60 * MS, 6, PERIOD_S) == 1


def paused(periods: int) -> LastSeen:
    pause = Pause(periods, counted_ns=0, switches=1)
    return LastSeen(moment=moment(0), at_ns=0, stack=0, pause=pause)


def switched(times: int, now_ns: int) -> int:
    """The pause of a thread after so many switches."""
    return pause_of(paused(1), ThreadMoment("S", None, (0, 0, 1 + times)), now_ns).periods


def test_a_thread_that_switches_often_is_read_less_often() -> None:
    assert switched(400, 1000 * MS) == 1
    assert switched(2000, 1000 * MS) == 4
    assert switched(200_000, 1000 * MS) == MAX_READ_PAUSE
    assert pause_of(None, moment(0), 10 * MS).periods == 1


def test_the_switches_of_a_short_span_change_nothing() -> None:
    assert switched(100, 10 * MS) == 1


def test_a_thread_is_due_after_its_pause() -> None:
    last = paused(4)
    assert not is_due(last, 30 * MS, 1, PERIOD_S)
    assert is_due(last, 36 * MS, 1, PERIOD_S)
    assert is_due(last, 30 * MS, 4, PERIOD_S)


def test_a_sample_after_a_pause_stands_for_the_whole_pause() -> None:
    assert periods_asleep(paused(4), 41 * MS, 1, PERIOD_S) == 4
