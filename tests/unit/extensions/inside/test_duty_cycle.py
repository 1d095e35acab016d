"""Threads that switch often are sampled in short turns, with many samples in each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from locktop.collector.extensions.inside import bursts, duty_cycle
from locktop.collector.extensions.inside.bursts import MAX_CYCLES
from locktop.collector.extensions.inside.duty_cycle import (
    EVENT_SWITCH_S,
    HOOK_STAYS_S,
    HOOK_SWITCH_S,
    MAX_COST,
    MIN_CPUS,
    MIN_PERIOD_S,
    TURN_COST_S,
    DutyCycle,
    RunCounts,
    cycle_s,
    load_between,
    sample_period_s,
    turn_s,
)
from locktop.collector.symbols.unwind.perf_stream import TimedCopy
from locktop.collector.symbols.unwind.stack_memory import StackCopy

PERIOD_S = 0.01
S = 1_000_000_000
COPY = TimedCopy(1, 0, StackCopy((), b"", 0))


class Clock:
    """The time of a test."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Stream:
    """Samples a thread that runs all the time."""

    def __init__(self, clock: Clock, is_wide: bool = False) -> None:
        self._clock = clock
        self.is_wide = is_wide
        self.period_s = PERIOD_S if is_wide else 0.0  # 0: off
        self.on_s = 0.0
        self.turns = 0
        self.stretch = 1.0
        self._read_at = clock.now

    def begin(self, period_s: float, is_varied: bool = False) -> None:
        if period_s != self.period_s:
            self.period_s, self._read_at = period_s, self._clock.now
            self.turns += 1

    def end(self) -> None:
        self.period_s = 0.0

    def read(self) -> Iterator[TimedCopy]:
        passed_s = self._clock.now - self._read_at
        if self.period_s:
            self.on_s += passed_s
            count = int(passed_s / self.period_s + 1e-9)
            self._read_at += count * self.period_s
            yield from [COPY] * count


def cost(switches: float, turn: float) -> float:
    """Return the cost of turns as a share of the threads' time."""
    cycle = cycle_s(switches, turn)
    hooks_s = min(cycle, turn + HOOK_STAYS_S)
    event_s = turn * (EVENT_SWITCH_S - HOOK_SWITCH_S)
    return switches * (event_s + hooks_s * HOOK_SWITCH_S) / cycle


@pytest.mark.parametrize("longer", [1.0, 4.0])
@pytest.mark.parametrize("switches", [4_000, 10_000, 25_000, 31_000, 100_000, 400_000])
def test_the_turns_cost_no_more_than_they_may(switches: int, longer: float) -> None:
    turn = turn_s(switches)
    assert turn * switches * EVENT_SWITCH_S == pytest.approx(TURN_COST_S)
    assert cost(switches, longer * turn) == pytest.approx(MAX_COST)


def test_threads_that_switch_seldom_are_sampled_all_the_time() -> None:
    assert not turn_s(0.0)
    assert not turn_s(MAX_COST / EVENT_SWITCH_S)


@pytest.mark.parametrize("switches", [4_000, 10_000, 25_000, 100_000, 400_000])
def test_a_sample_of_a_turn_stands_for_whole_periods(switches: int) -> None:
    turn = turn_s(switches)
    cycle = cycle_s(switches, turn)
    period_s = sample_period_s(PERIOD_S, turn, cycle, 1.0)
    count = period_s * cycle / turn / PERIOD_S
    assert count == pytest.approx(round(count))
    assert MIN_PERIOD_S * 0.99 <= period_s <= PERIOD_S
    # The first sample comes a period after the begin.
    assert period_s < turn / 100


def test_many_cpus_do_not_bring_more_samples_of_a_turn_than_there_is_room() -> None:
    assert 0.025 * 64 / sample_period_s(PERIOD_S, 0.025, 14.0, 64.0) <= 500


def test_the_load_is_that_of_the_threads_with_the_most_switches() -> None:
    before = {tid: RunCounts(0, 0, 0) for tid in (1, 2)}
    busy = {1: RunCounts(S, S, 10), 2: RunCounts(S, S // 2, 1000)}
    assert load_between(before, busy) == (2000.0, 1.5)
    # Three threads share a CPU.
    shared = {tid: RunCounts(S, S // 3, 1000) for tid in (1, 2, 3)}
    found = load_between(dict.fromkeys(shared, RunCounts(0, 0, 0)), shared)
    assert found == pytest.approx((3000.0, 1.0), rel=0.01)


def test_a_thread_that_sleeps_most_of_the_time_costs_little() -> None:
    found = load_between({1: RunCounts(0, 0, 0)}, {1: RunCounts(S, S // 1000, 100)})
    assert found is not None
    assert found.switches == pytest.approx(100 / MIN_CPUS)


def test_a_thread_that_was_not_read_again_has_no_load() -> None:
    assert load_between({}, {1: RunCounts(S, S, 10)}) is None
    assert load_between({1: RunCounts(S, S, 10)}, {1: RunCounts(S, S, 10)}) is None


class Run:
    """A thread that runs all the time, and switches so many times a second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, is_wide: bool = False) -> None:
        self.clock = Clock()
        monkeypatch.setattr(duty_cycle, "time", self.clock)
        monkeypatch.setattr(bursts, "time", self.clock)
        self.paused_s = 0.0
        self.stream = Stream(self.clock, is_wide)
        self.duty = DutyCycle(self.stream, PERIOD_S)
        self._runs, self._began = 0.0, self.clock.now

    def sampled_s(self, switches: float, seconds: float) -> float:
        """Return the time that the samples of the next seconds stand for."""
        found, until = 0, self.clock.now + seconds
        while self.clock.now < until:
            at = self.clock.now
            pause_s = self.duty.pause_s
            self.paused_s += pause_s
            self.clock.sleep(pause_s)
            samples = self.duty.read()
            found += len(samples.copies) * samples.periods
            self.duty.wait(self.clock.now + PERIOD_S)
            self._runs += switches * (self.clock.now - at)
            ns = round((self.clock.now - self._began) * S)
            self.duty.count({1: RunCounts(ns, ns, round(self._runs))})
        return found * PERIOD_S


@pytest.mark.parametrize("switches", [100, 2_000, 5_000, 30_000, 300_000])
def test_samples_stand_for_all_the_time(switches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that runs all the time gets one sample for each period, in the mean."""
    run = Run(monkeypatch)
    assert run.sampled_s(switches, 600.0) == pytest.approx(600.0, rel=0.05)


def test_the_first_turn_comes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch)
    assert run.sampled_s(300_000, 0.5) > 0
    assert run.duty.has_turns
    assert run.stream.turns == 1
    assert not run.stream.period_s


def test_the_turns_follow_the_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch)
    run.sampled_s(100, 5.0)
    assert not run.duty.has_turns
    assert run.stream.turns == 1
    run.sampled_s(100_000, 20.0)
    assert run.duty.has_turns
    assert run.stream.turns > 1
    # A program that is calm for some seconds may be busy again.
    run.sampled_s(100, 2.0)
    assert run.duty.has_turns
    run.sampled_s(100, 60.0)
    assert not run.duty.has_turns
    on_s = run.stream.on_s
    assert run.sampled_s(100, 10.0) == pytest.approx(10.0, rel=0.05)
    assert run.stream.on_s == pytest.approx(on_s + 10.0, rel=0.05)


def test_events_of_cpus_need_no_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, is_wide=True)
    assert run.sampled_s(30_000, 10.0) == pytest.approx(10.0, rel=0.05)
    assert not run.stream.turns
    assert not run.paused_s


@pytest.mark.parametrize("is_wide", [True, False])
def test_nothing_is_done_between_bursts(is_wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that runs all the time gets one sample for each period in bursts too."""
    run = Run(monkeypatch, is_wide)
    assert run.sampled_s(300_000, 600.0) == pytest.approx(600.0, rel=0.08)
    assert run.duty.bursts.cycles == MAX_CYCLES
    assert run.paused_s == pytest.approx(600.0 * (1 - 1 / MAX_CYCLES), rel=0.05)
    run.sampled_s(100, 60.0)
    assert not run.duty.has_turns
    paused_s = run.paused_s
    assert run.sampled_s(100, 10.0) == pytest.approx(10.0, rel=0.05)
    assert run.paused_s == paused_s
