"""For how much time a sample of a sleeping thread stands."""

from __future__ import annotations

from locktop.collector.linux.threads import ThreadMoment
from locktop.collector.sources.probes.holder_sampler import LastSeen, periods_asleep

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
