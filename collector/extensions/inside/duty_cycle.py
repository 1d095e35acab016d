"""Samples threads all the time, or in turns if they leave their CPUs often.

An event of a thread sets and clears a timer of the kernel at each context switch. While any thread
has an event, the switches of all other threads cost a little more too. The kernel goes on with that
for a second after the last event. So threads that switch often have events for short turns alone,
with many samples in each turn. The pauses are so long that the turns stay cheap.

Events of whole CPUs have a turn in each burst (bursts.py).
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from locktop.collector.extensions.inside.bursts import Bursts
from locktop.collector.symbols.unwind.perf_stream import TimedCopy

#: The share of the threads' CPU time that the switches may cost.
MAX_COST = 0.006
#: Seconds that a switch takes longer while the thread has an event.
EVENT_SWITCH_S = 2e-6
#: Seconds that a switch takes longer while some thread of the machine has or had an event.
HOOK_SWITCH_S = 0.2e-6
#: Seconds after the last event in which the kernel still does so (perf_sched_work, HZ).
HOOK_STAYS_S = 1.0
#: CPU seconds that a turn costs. More would cost over 1 % of the first five seconds.
TURN_COST_S = 0.015
#: CPU seconds between the samples of a turn at least: a sample costs the kernel some 20 us.
MIN_PERIOD_S = 1e-4
#: Samples of a turn: some 8 KiB each.
_MAX_SAMPLES = 500
#: Samples of a thread between two readings: a ring has room for 7 or 14. Seconds between two
#: readings at least.
_DRAIN_SAMPLES, _MIN_DRAIN_S = 5, 0.0005
#: Turns up to so many seconds are left alone: work between would leave the rings full.
_SHORT_S = 0.1
#: Seconds over which switches are counted, and those of the first count.
COUNTED_S, _FIRST_COUNT_S = 0.25, 0.05
#: The shortest and the longest period in a burst, as parts of the mean, and seconds of each.
_SPREAD, _VARIED_S = (0.8, 1.2), 0.05
#: Threads that use less of a CPU count as if they used so much of it.
MIN_CPUS = 0.25
#: The factor by which the known rate of switches falls at each count. A program that is calm for
#: some seconds is not sampled all the time before it is busy again.
_FALL = 0.95


class Stream(Protocol):
    """Samplers as SampleStream."""

    @property
    def is_wide(self) -> bool:
        """Whether the samples cost nothing at a switch."""

    @property
    def stretch(self) -> float:
        """How many periods a sample stands for, because others were dropped."""

    def begin(self, period_s: float, is_varied: bool = False) -> None:
        """Sample each ``period_s`` of a thread's processor time, or at about these times."""

    def end(self) -> None:
        """Sample no thread."""

    def read(self) -> Iterator[TimedCopy]:
        """Yield the samples since the last call."""


class RunCounts(NamedTuple):
    """The scheduler's counts of a thread since its start."""

    at_ns: int  # the time of the reading
    ran_ns: int  # time on a CPU
    runs: int  # how often the thread was put on a CPU


class Load(NamedTuple):
    """The CPU use of some threads between two readings."""

    switches: float  # for each CPU second, of the threads with the most of them
    cpus: float  # CPU seconds in a second, of all threads


class Samples(NamedTuple):
    """Samples of running threads."""

    copies: list[TimedCopy]
    periods: float  # for which each sample stands


def load_between(before: Mapping[int, RunCounts], now: Mapping[int, RunCounts]) -> Load | None:
    """Return the load of the threads that two readings have in common; None if there are none."""
    most = runs = cpus = 0.0
    count = 0
    for tid, last in now.items():
        first = before.get(tid)
        if first is None or last.at_ns <= first.at_ns:
            continue
        count += 1
        passed_ns = last.at_ns - first.at_ns
        of_thread = 1e9 * (last.runs - first.runs) / passed_ns
        share = (last.ran_ns - first.ran_ns) / passed_ns
        most = max(most, of_thread / max(share, MIN_CPUS))
        runs += of_thread
        cpus += share
    return Load(max(most, runs / max(cpus, MIN_CPUS)), cpus) if count else None


def turn_s(switches: float) -> float:
    """Return the seconds of a turn; 0.0 if the threads are to be sampled all the time.

    Args:
        switches: for each CPU second.
    """
    cost = switches * EVENT_SWITCH_S
    return TURN_COST_S / cost if cost > MAX_COST else 0.0


def cycle_s(switches: float, turn: float) -> float:
    """Return the seconds from one turn to the next, for threads that need pauses.

    Args:
        switches: for each CPU second.
        turn: seconds of a turn.
    """
    hooks = switches * HOOK_SWITCH_S
    events = switches * EVENT_SWITCH_S - hooks
    with_hooks = turn + HOOK_STAYS_S
    if hooks < MAX_COST:
        # The pauses are so short that the kernel does more all the time.
        cycle = turn * events / (MAX_COST - hooks)
        if cycle <= with_hooks:
            return cycle
    return (turn * events + with_hooks * hooks) / MAX_COST


def sample_period_s(period_s: float, turn: float, cycle: float, cpus: float) -> float:
    """Return the CPU seconds between two samples of a turn.

    Each sample of a turn stands for a whole number of periods.

    Args:
        period_s: CPU seconds between two samples in the mean.
        turn: seconds of a turn.
        cycle: seconds from one turn to the next.
        cpus: CPUs that the threads use.
    """
    wanted_s = period_s * turn / cycle
    least_s = min(max(MIN_PERIOD_S, turn * cpus / _MAX_SAMPLES), period_s)
    return wanted_s * max(1, math.ceil(least_s / wanted_s - 1e-6))


class _Turn(NamedTuple):
    began_at: float  # time.monotonic()
    ends_at: float  # later samples are dropped
    is_short: bool
    drain_s: float  # between two readings


class DutyCycle:
    """Decides when a stream samples, and reads the samples."""

    def __init__(self, stream: Stream, period_s: float) -> None:
        """``period_s``: CPU seconds between two samples in the mean."""
        self._stream = stream
        self._period_s = period_s
        self.bursts = Bursts()
        self._load: Load | None = None
        self._counts: Mapping[int, RunCounts] = {}
        self._counted_at = self._ended_at = time.monotonic()
        self._last_s = 0.0  # seconds of the last turn
        self._varied_at = 0.0  # time.monotonic()
        self._turn: _Turn | None = None
        self._copies: list[TimedCopy] = []  # of the last turn, or of the present one
        self._periods = 1.0  # for which each of them stands

    @property
    def has_turns(self) -> bool:
        """Whether the threads are sampled in turns."""
        if self._stream.is_wide:
            return self.bursts.cycles > 1
        return self._load is not None and turn_s(self._load.switches) > 0.0

    @property
    def pause_s(self) -> float:
        """Seconds for which nothing is to be done."""
        return 0.0 if self._turn is not None else self.bursts.pause_s()

    def count(self, counts: Mapping[int, RunCounts]) -> None:
        """Learn what the threads have done so far, by tid."""
        now = time.monotonic()
        passed_s = now - self._counted_at
        if passed_s < (COUNTED_S if self._load else _FIRST_COUNT_S) and self._counts:
            return
        load = load_between(self._counts, counts)
        self._counts, self._counted_at = dict(counts), now
        if load is None:
            return
        switches = self._load.switches if self._load else 0.0
        is_on = self._load is not None or self._stream.is_wide
        had_events = is_on and not self.has_turns and not self._turn
        self._load = load._replace(switches=max(load.switches, _FALL * switches))
        self.bursts.follow(self._load.switches)
        if self.has_turns and had_events:
            # The events so far count as a turn.
            self._stream.end()
            self._last_s = turn_s(self._load.switches)

    def wait(self, until: float) -> None:
        """Wait until some time, by time.monotonic(). A short turn that goes on ends first."""
        while (now := time.monotonic()) < until or (self._turn and self._turn.is_short):
            if self._turn is None:
                time.sleep(until - now)
                continue
            left_s = self._turn.ends_at - now
            if not self._turn.is_short:
                left_s = min(left_s, until - now)
            time.sleep(max(0.0, min(left_s, self._turn.drain_s)))
            self._drain(self._turn)

    def read(self) -> Samples:
        """Return the samples since the last call, and begin a turn if it is time."""
        self.bursts.advance()
        if self._load is None and not self._stream.is_wide:
            return Samples([], 1)
        if self._turn is not None:
            self._drain(self._turn)
        samples = Samples(self._copies, self._periods * self._stream.stretch)
        self._copies = []
        if self._turn is not None and self._stream.is_wide:
            self._vary()
        if self._turn is not None or samples.copies:
            return samples
        if self.has_turns and self._stream.is_wide:
            self._begin_burst()
            return samples
        if self.has_turns and self._load is not None:
            self._begin_if_due(self._load)
            return samples
        self._stream.begin(self._period_s)
        self._ended_at = time.monotonic()
        return Samples(list(self._stream.read()), 1)

    def _begin_burst(self) -> None:
        now = time.monotonic()
        if now >= self.bursts.ends_at:
            self._stream.end()
            return
        period_s = self._burst_period_s()
        self._periods = period_s * self.bursts.cycles / self._period_s
        self._varied_at = 0.0
        self._vary()
        self._turn = _Turn(
            began_at=now,
            ends_at=self.bursts.ends_at,
            is_short=False,
            drain_s=max(_MIN_DRAIN_S, _DRAIN_SAMPLES * period_s),
        )

    def _burst_period_s(self) -> float:
        return max(self._period_s / self.bursts.cycles, min(MIN_PERIOD_S, self._period_s))

    def _vary(self) -> None:
        """Change the period of events of CPUs: a steady one may meet the program's rhythm."""
        now = time.monotonic()
        if now >= self._varied_at + _VARIED_S:
            self._varied_at = now
            self._stream.begin(self._burst_period_s() * random.uniform(*_SPREAD))

    def _begin_if_due(self, load: Load) -> None:
        pause_s = cycle_s(load.switches, self._last_s) - self._last_s
        if time.monotonic() < self._ended_at + pause_s and self._last_s:
            return
        turn = turn_s(load.switches)
        cycle = cycle_s(load.switches, turn)
        period_s = sample_period_s(self._period_s, turn, cycle, load.cpus)
        self._stream.begin(period_s, is_varied=True)
        now = time.monotonic()
        # A turn stands for half of the pauses around. The next one may wait for a burst too.
        before_s = now - self._ended_at
        stands_s = turn + (before_s + max(before_s, cycle - turn)) / 2
        self._periods = max(1, round(period_s * stands_s / turn / self._period_s))
        self._turn = _Turn(
            began_at=now,
            ends_at=now + turn,
            is_short=turn <= _SHORT_S,
            drain_s=max(_MIN_DRAIN_S, _DRAIN_SAMPLES * period_s),
        )

    def _drain(self, turn: _Turn) -> None:
        ends_ns = turn.ends_at * 1e9
        self._copies += [copy for copy in self._stream.read() if copy.time_ns <= ends_ns]
        now = time.monotonic()
        if now >= turn.ends_at:
            self._stream.end()
            self._turn, self._ended_at, self._last_s = None, now, now - turn.began_at
