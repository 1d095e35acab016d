"""For how much time a sample of a sleeping thread stands."""

from __future__ import annotations

from locktop.collector.linux.threads import ThreadMoment
from locktop.collector.sources.probes.duty_cycle import MAX_BOOST
from locktop.collector.sources.probes.holder_sampler import (
    LastSeen,
    is_due,
    pause_of,
    periods_asleep,
)

PERIOD_S = 0.01
MS = 1_000_000


def moment(ran_ms: int, queued_ms: int = 0) -> ThreadMoment:
    return ThreadMoment("S", None, (ran_ms * MS, queued_ms * MS, 1))


def asleep(passed_ms: int, ran_ms: int, queued_ms: int, periods: int) -> int:
    last = LastSeen(moment=moment(0), at_ns=0, stack=0)
    now = moment(ran_ms, queued_ms)
    return periods_asleep(last, now, passed_ms * MS, periods, PERIOD_S)


def test_a_thread_that_slept_all_the_while_counts_in_full() -> None:
    assert asleep(60, 0, 0, 6) == 6


def test_the_time_on_a_processor_is_no_sleep() -> None:
    assert asleep(60, 40, 0, 6) == 2


def test_the_wait_for_a_processor_is_no_sleep() -> None:
    assert asleep(60, 10, 30, 6) == 2


def test_a_sample_stands_for_no_less_than_one_period_and_no_more_than_passed() -> None:
    assert asleep(60, 60, 0, 6) == 1
    assert asleep(200, 0, 0, 6) == 6
    assert asleep(60, 60, 0, 1) == 1
    assert periods_asleep(None, moment(5), 60 * MS, 6, PERIOD_S) == 1


def switched(times: int, now_ns: int) -> int:
    """The pause of a thread after so many switches."""
    last = LastSeen(moment=moment(0), at_ns=0, stack=0)
    return pause_of(last, ThreadMoment("S", None, (0, 0, 1 + times)), now_ns)


def test_a_thread_that_switches_often_is_read_less_often() -> None:
    assert switched(4, 10 * MS) == 1
    assert switched(20, 10 * MS) == 4
    assert switched(2000, 10 * MS) == MAX_BOOST
    assert switched(2000, 0) == 1
    assert pause_of(None, moment(0), 10 * MS) == 1


def test_a_thread_is_due_after_its_pause() -> None:
    last = LastSeen(moment=moment(0), at_ns=0, stack=0, pause=4)
    assert not is_due(last, 30 * MS, 1, PERIOD_S)
    assert is_due(last, 36 * MS, 1, PERIOD_S)
    assert is_due(last, 30 * MS, 4, PERIOD_S)


def test_a_sample_after_a_pause_stands_for_the_whole_pause() -> None:
    last = LastSeen(moment=moment(0), at_ns=0, stack=0, pause=4)
    assert periods_asleep(last, moment(20), 41 * MS, 1, PERIOD_S) == 4
