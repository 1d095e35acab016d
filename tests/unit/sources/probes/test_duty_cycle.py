"""Threads that switch often are sampled for a part of the time, at a higher rate."""

from __future__ import annotations

import pytest

from locktop.collector.sources.probes import duty_cycle
from locktop.collector.sources.probes.duty_cycle import MAX_BOOST, MAX_SWITCHES, DutyCycle, parts

PERIOD_S = 0.01


class Stream:
    """Notes how it is switched."""

    def __init__(self) -> None:
        self.on, self.period_s = True, PERIOD_S

    def switch(self, on: bool) -> None:
        self.on = on

    def set_period(self, period_s: float) -> None:
        self.period_s = period_s


class Clock:
    """The time of a test."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


def test_the_time_is_divided_by_the_switches() -> None:
    assert parts(0.0) == parts(MAX_SWITCHES) == 1
    assert parts(3 * MAX_SWITCHES) == 3
    assert parts(11 * MAX_SWITCHES) == 2 * MAX_BOOST
    assert parts(1e9) == parts(1e12)


@pytest.mark.parametrize("switches", [100, 2_000, 30_000])
def test_samples_stand_for_all_the_time(switches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that runs all the time gets one sample for each period, in the mean."""
    clock, stream = Clock(), Stream()
    monkeypatch.setattr(duty_cycle, "time", clock)
    duty = DutyCycle(stream, PERIOD_S)
    runs, sampled_s = 0, 0.0
    begin = 0.0
    for _ in range(5000):
        pause_s = PERIOD_S if duty.begin() else 4 * PERIOD_S
        clock.now += pause_s
        samples = pause_s / stream.period_s if stream.on else 0.0
        sampled_s += samples * PERIOD_S * duty.end()
        runs += round(switches * pause_s)
        duty.count({1: runs})
        if clock.now < 110.0:  # the first counts
            sampled_s, begin = 0.0, clock.now
    assert sampled_s / (clock.now - begin) == pytest.approx(1.0, rel=0.05)
