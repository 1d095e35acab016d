"""When the threads of locktop work on samples at all: all the time, or in bursts.

A program that switches very often is slower while another CPU wakes often, whatever wakes there
(bench/wakeups.py). So nothing wakes between two bursts: no sample is taken, no thread is read, and
no ring is copied. A sample of a burst stands for the pause too.
"""

from __future__ import annotations

import math
import random
import time

#: Seconds that a switch takes longer while another CPU wakes often.
WAKE_SWITCH_S = 60e-9
#: The share of the threads' CPU time that the wake-ups may cost.
MAX_WAKE_COST = 0.003
#: Seconds of a burst: several readings of each thread.
BURST_S = 0.5
#: Bursts that would fill the time from one burst to the next, at most. Profiles of five seconds
#: have two bursts.
MAX_CYCLES = 5
#: The shortest and the longest pause, as parts of the mean. A program may have a rhythm.
_SPREAD = 0.8, 1.2


def cycles(switches: float) -> int:
    """Return how many bursts would fill the time from one burst to the next.

    Args:
        switches: for each CPU second.
    """
    return min(max(1, math.ceil(switches * WAKE_SWITCH_S / MAX_WAKE_COST)), MAX_CYCLES)


class Bursts:
    """The times of bursts. One thread moves them on, and others may read them.

    Attributes:
        cycles: see ``cycles()``; 1: there are no pauses.
    """

    def __init__(self) -> None:
        self.cycles = 1
        #: The end of the present burst or of the last one, and the begin of the next one.
        self._times = math.inf, math.inf  # time.monotonic()

    def follow(self, switches: float) -> None:
        """Learn how often the threads switch, for each CPU second."""
        count = cycles(switches)
        if (count > 1) != (self.cycles > 1):
            self._times = self._schedule(time.monotonic(), count)
        self.cycles = count

    def advance(self) -> None:
        """Begin the next burst if it is time."""
        now = time.monotonic()
        if now >= self._times[1]:
            self._times = self._schedule(now, self.cycles)

    @property
    def ends_at(self) -> float:
        """The end of the burst, by time.monotonic(); infinite without pauses."""
        return self._times[0]

    def pause_s(self) -> float:
        """Return the seconds until the next burst; 0.0 during a burst."""
        ends_at, next_at = self._times
        now = time.monotonic()
        return max(0.0, next_at - now) if now >= ends_at else 0.0

    @staticmethod
    def _schedule(now: float, count: int) -> tuple[float, float]:
        if count == 1:
            return math.inf, math.inf
        ends_at = now + BURST_S
        return ends_at, ends_at + BURST_S * (count - 1) * random.uniform(*_SPREAD)
