"""Wait times out of samples, and how wrong they may be.

A thread that was in one wait in two samples waited all the time between them; of one that was in it
in one of the two only, half of that time is taken. So what is waited is told without bias, but for
how long each time is known only as well as the samples lie close: the error is that of a count. Of
n intervals of length d at whose ends a thread was not in the same wait, it is d * sqrt(n / 2), one
standard deviation, as for waits far shorter than d, each of which is met by chance (two such
intervals for each that is met: variance d^2, as of a Poisson count); of longer ones it is less.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Set
from dataclasses import dataclass, field

from locktop.collector.glibc_objects import Object
from locktop.collector.model import Kind
from locktop.collector.outside_waits import OutsideWait

Key = tuple[Kind, int]


@dataclass(slots=True)
class Sum:
    """Seconds, and the variance of them."""

    s: float = 0.0
    variance: float = 0.0

    @property
    def error_s(self) -> float:
        """One standard deviation."""
        return math.sqrt(self.variance)

    def add(self, seconds: float, variance: float) -> None:
        self.s += seconds
        self.variance += variance


@dataclass(slots=True)
class SampledLock:
    """What was seen of one lock since the sampling began."""

    id: int
    what: Object  # as seen last
    wait: Sum = field(default_factory=Sum)
    met: int = 0  # waits that a sample met
    longest_s: float = 0.0
    blame: dict[int, float] = field(default_factory=dict)  # by the owner's tid, 0: ended, not known


class Sampled:
    """Adds up sample after sample."""

    def __init__(self) -> None:
        self.locks: dict[Key, SampledLock] = {}
        self.by_thread: dict[int, dict[Kind, Sum]] = {}  # by Sample.life
        self._blamed: set[int] = set()  # tids
        self._before: Mapping[int, OutsideWait] = {}
        self._at = 0.0

    def add(self, now: float, waits: Mapping[int, OutsideWait]) -> None:
        """Add a sample that was taken at ``now`` (time.monotonic())."""
        interval_s = now - self._at if self._at else 0.0
        for tid, wait in waits.items():
            before = self._before.get(tid)
            goes_on = before is not None and before.seq == wait.seq
            lock = self._lock(wait)
            if not goes_on:
                lock.met += 1
            lock.longest_s = max(lock.longest_s, now - wait.since)
            if interval_s:
                self._count(wait, interval_s, goes_on)
        if interval_s:
            for tid, wait in self._before.items():
                after = waits.get(tid)
                if after is None or after.seq != wait.seq:
                    self._count(wait, interval_s, False)
        self._before, self._at = waits, now

    def lock_of(self, wait: OutsideWait) -> SampledLock:
        """Return what is known of the lock that is waited for."""
        return self.locks[wait.what.kind, wait.what.address]

    def forget_threads(self, lives: Container[int], newcomers: Set[int]) -> None:
        """Let go of what threads that ended have waited: their locks still have it. ``newcomers``:
        tids that others have now, who are not to blame for what those before them had."""
        self.by_thread = {life: sums for life, sums in self.by_thread.items() if life in lives}
        for tid in self._blamed & newcomers:
            self._blamed.discard(tid)
            for lock in self.locks.values():
                if tid in lock.blame:
                    lock.blame[0] = lock.blame.get(0, 0.0) + lock.blame.pop(tid)

    def _lock(self, wait: OutsideWait) -> SampledLock:
        key = wait.what.kind, wait.what.address
        lock = self.locks.get(key)
        if lock is None:
            lock = self.locks[key] = SampledLock(len(self.locks) + 1, wait.what)
        lock.what = wait.what
        return lock

    def _count(self, wait: OutsideWait, interval_s: float, goes_on: bool) -> None:
        seconds = interval_s if goes_on else interval_s / 2
        variance = 0.0 if goes_on else interval_s * interval_s / 2
        lock = self._lock(wait)
        lock.wait.add(seconds, variance)
        owner = wait.what.owner
        lock.blame[owner] = lock.blame.get(owner, 0.0) + seconds
        self._blamed.add(owner)
        sums = self.by_thread.setdefault(wait.life, {})
        sums.setdefault(wait.what.kind, Sum()).add(seconds, variance)
