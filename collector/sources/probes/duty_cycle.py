"""Samples threads in turns of on and off, so that many context switches stay cheap.

A thread with a sampler of its own sets and clears a timer of the kernel at each context switch. The
timer may take microseconds on a virtual machine. So threads that switch often are sampled for a
part of the time, at a higher rate.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from typing import Protocol

#: Switches in a second of one thread that may have the timer: they take some 0.5 % of its time.
MAX_SWITCHES = 500.0
#: By so much the rate of samples may grow; a sample stands for more time beyond that.
MAX_BOOST = 10
_MAX_PARTS = 20 * MAX_BOOST
#: Seconds over which switches are counted.
COUNTED_S = 0.25


class Switched(Protocol):
    """Samplers that can be switched, as SampleStream."""

    def switch(self, on: bool) -> None:
        """Sample all threads or none. The rest of a period goes on later."""

    def set_period(self, period_s: float) -> None:
        """Sample each ``period_s`` of a thread's processor time."""


def parts(switches_per_s: float) -> int:
    """Return of how many parts of the time one is sampled."""
    needed = max(1, math.ceil(switches_per_s / MAX_SWITCHES))
    if needed > MAX_BOOST:
        needed = MAX_BOOST * math.ceil(needed / MAX_BOOST)
    return min(needed, _MAX_PARTS)


class DutyCycle:
    """Switches a stream on and off."""

    def __init__(self, stream: Switched, period_s: float) -> None:
        self._stream = stream
        self._period_s = period_s
        self._parts = 1
        self._off_s = 0.0  # seconds that are left of the part without samples
        self._at = time.monotonic()
        self._is_on = True
        self._runs: dict[int, int] = {}  # by tid, at ``_counted_at``
        self._counted_at = 0.0

    def begin(self) -> bool:
        """Begin a pause of the sampler; return whether the pause must be short."""
        self._at = time.monotonic()
        if self._parts == 1:
            return False
        self._is_on = self._off_s <= 0.0
        if self._is_on:
            self._stream.switch(True)
        return self._is_on

    def end(self) -> int:
        """End the pause; return for how many periods each of its samples stands."""
        passed_s = time.monotonic() - self._at
        if self._parts == 1:
            return 1
        if self._is_on:
            self._stream.switch(False)
            self._off_s += (self._parts - 1) * passed_s
        else:
            self._off_s -= passed_s
        return max(1, self._parts // MAX_BOOST)

    def count(self, runs: Mapping[int, int]) -> None:
        """Learn how often each thread was put on a CPU so far, by tid."""
        now = time.monotonic()
        passed_s = now - self._counted_at
        if passed_s < COUNTED_S and runs.keys() <= self._runs.keys():
            return
        grown = _grown(self._runs, runs.items())
        self._runs, self._counted_at = dict(runs), now
        if passed_s >= COUNTED_S:
            self._set(parts(grown / passed_s))

    def restart(self) -> None:
        """Switch the stream anew, because it has other threads."""
        self._stream.set_period(self._period_s / min(self._parts, MAX_BOOST))
        self._stream.switch(self._parts == 1)

    def _set(self, wanted: int) -> None:
        if wanted != self._parts:
            self._parts, self._off_s = wanted, 0.0
            self.restart()


def _grown(before: Mapping[int, int], now: Iterable[tuple[int, int]]) -> int:
    """Return the most by which the figure of one thread grew."""
    return max((runs - before.get(tid, runs) for tid, runs in now), default=0)
