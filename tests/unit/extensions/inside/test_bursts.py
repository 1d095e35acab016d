"""Programs that switch very often are sampled in bursts, and nothing wakes between them."""

from __future__ import annotations

import math

import pytest

from locktop.collector.extensions.inside import bursts
from locktop.collector.extensions.inside.bursts import (
    BURST_S,
    MAX_CYCLES,
    MAX_WAKE_COST,
    WAKE_SWITCH_S,
    Bursts,
    cycles,
)


class Clock:
    """The time of a test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(bursts, "time", self)

    def monotonic(self) -> float:
        return self.now


@pytest.mark.parametrize("switches", [0.0, 3_000.0, 50_000.0])
def test_a_program_with_fewer_switches_is_sampled_all_the_time(
    switches: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, found = Clock(monkeypatch), Bursts()
    found.follow(switches)
    clock.now += 1e6
    found.advance()
    assert found.cycles == 1
    assert not found.pause_s()
    assert found.ends_at == math.inf


@pytest.mark.parametrize("switches", [60_000.0, 100_000.0, 240_000.0])
def test_the_wake_ups_of_bursts_cost_no_more_than_they_may(switches: float) -> None:
    assert cycles(switches) > 1
    assert switches * WAKE_SWITCH_S / cycles(switches) <= MAX_WAKE_COST * 1.0001


def test_a_burst_comes_at_once_and_after_each_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, found = Clock(monkeypatch), Bursts()
    found.follow(1e6)
    assert found.cycles == MAX_CYCLES
    paused_s = 0.0
    for _ in range(400):
        assert not found.pause_s()
        assert found.ends_at == pytest.approx(clock.now + BURST_S)
        clock.now = found.ends_at
        found.advance()
        pause_s = found.pause_s()
        assert pause_s > BURST_S
        paused_s += pause_s
        clock.now += pause_s + 1e-6
        assert not found.pause_s()
        found.advance()
    assert paused_s / 400 == pytest.approx((MAX_CYCLES - 1) * BURST_S, rel=0.05)


def test_the_bursts_end_when_the_program_switches_less(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, found = Clock(monkeypatch), Bursts()
    found.follow(1e6)
    clock.now = found.ends_at
    assert found.pause_s() > 0
    found.follow(100.0)
    assert not found.pause_s()
    assert found.cycles == 1
