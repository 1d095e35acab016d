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
from collections.abc import Container, Iterable, Mapping, Set
from dataclasses import dataclass, field

from locktop.collector.model import Kind
from locktop.collector.sources.sampling.nptl_objects import Object
from locktop.collector.sources.sampling.wait_objects import ObjectWait

#: Owners of a lock that are told apart, of those that ended.
_MAX_BLAMED = 500

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


@dataclass(slots=True)
class EstimatedLock:
    """What was seen of one lock since the sampling began."""

    id: int
    what: Object  # as seen last
    wait: Sum = field(default_factory=Sum)
    met: int = 0  # waits that a sample met
    longest_s: float = 0.0
    #: By the owner's tid, 0: ended, not known; another one when owners are put together.
    blame: dict[int, float] = field(default_factory=dict)


@dataclass(slots=True)
class _Sleep:
    """A wait that goes on."""

    wait: ObjectWait
    lock: EstimatedLock
    waited: dict[Kind, float]  # by its thread
    counted_to: float  # all of it before that is in the sums: time.monotonic()


class WaitEstimator:
    """Adds up sample after sample.

    What a sample finds as the one before left it costs nothing: a wait that goes on is counted when
    it has changed, or when somebody asks for the sums.
    """

    def __init__(self) -> None:
        self._locks: dict[Key, EstimatedLock] = {}
        self._by_thread: dict[int, dict[Kind, float]] = {}  # by Sample.life
        self._blamed: set[int] = set()  # tids
        self._asleep: dict[int, _Sleep] = {}  # by tid, in the last sample
        self._waits: Mapping[int, ObjectWait] = {}
        self._at = self._settled_at = 0.0
        self.first_at = 0.0  # when the first sample was taken: what it met had begun before

    def add(self, now: float, waits: Mapping[int, ObjectWait]) -> None:
        """Add a sample that was taken at ``now`` (time.monotonic())."""
        before, before_at = self._waits, self._at
        self.first_at = self.first_at or now
        interval_s = now - before_at if before_at else 0.0
        for tid in [tid for tid, wait in before.items() if waits.get(tid) is not wait]:
            self._leave(tid, waits.get(tid), interval_s)
        self._waits, self._at = waits, now
        for tid, wait in [one for one in waits.items() if before.get(one[0]) is not one[1]]:
            self._enter(wait, before.get(tid), before_at, interval_s)

    @property
    def locks(self) -> Mapping[Key, EstimatedLock]:
        """What was seen of each lock, by the last sample."""
        self._settle()
        return self._locks

    @property
    def by_thread(self) -> Mapping[int, Mapping[Kind, float]]:
        """How long each thread has waited, by Sample.life, by the last sample: seconds."""
        self._settle()
        return self._by_thread

    def lock_of(self, wait: ObjectWait) -> EstimatedLock:
        """Return what is known of the lock that is waited for; its sums may be behind."""
        return self._locks[wait.what.kind, wait.what.address]

    def forget_threads(
        self, lives: Container[int], tids: Container[int], newcomers: Set[int]
    ) -> None:
        """Let go of what threads that ended have waited: their locks still have it. ``tids``: of
        those that live; ``newcomers``: tids that others have now, who are not to blame for what
        those before them had."""
        self._settle()
        self._by_thread = {life: sums for life, sums in self._by_thread.items() if life in lives}
        for tid in self._blamed & newcomers:
            self._blamed.discard(tid)
            for lock in self._locks.values():
                if tid in lock.blame:
                    _put_together(lock, [tid])
        for lock in self._locks.values():
            if len(lock.blame) > 2 * _MAX_BLAMED:
                self._fold_ended(lock, tids)

    def _fold_ended(self, lock: EstimatedLock, living: Container[int]) -> None:
        """Of many that ended only those that were waited for most stay apart."""
        blame = lock.blame
        ended = sorted((tid for tid in blame if tid and tid not in living), key=blame.__getitem__)
        _put_together(lock, ended[: max(len(blame) - _MAX_BLAMED, 0)])

    def _leave(self, tid: int, after: ObjectWait | None, interval_s: float) -> None:
        """A wait is over, or is told otherwise from now on."""
        asleep = self._asleep.pop(tid)
        self._count_to(asleep, self._at)
        if after is None or after.seq != asleep.wait.seq:
            self._count(asleep, interval_s / 2, interval_s * interval_s / 2)

    def _enter(
        self, wait: ObjectWait, before: ObjectWait | None, before_at: float, interval_s: float
    ) -> None:
        lock = self._lock(wait)
        waited = self._by_thread.setdefault(wait.life, {})
        asleep = self._asleep[wait.tid] = _Sleep(wait, lock, waited, self._at)
        if before is not None and before.seq == wait.seq:
            asleep.counted_to = before_at or self._at
            return
        lock.met += 1
        lock.longest_s = max(lock.longest_s, self._at - wait.since)
        if interval_s:
            self._count(asleep, interval_s / 2, interval_s * interval_s / 2)

    def _lock(self, wait: ObjectWait) -> EstimatedLock:
        key = wait.what.kind, wait.what.address
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = EstimatedLock(len(self._locks) + 1, wait.what)
        lock.what = wait.what
        return lock

    def _settle(self) -> None:
        """Count the waits that go on, up to the last sample."""
        if self._settled_at == self._at:
            return
        self._settled_at = self._at
        for asleep in self._asleep.values():
            self._count_to(asleep, self._at)

    def _count_to(self, asleep: _Sleep, at: float) -> None:
        seconds = at - asleep.counted_to
        if seconds <= 0.0:
            return
        asleep.counted_to = at
        longest_s = at - asleep.wait.since
        if longest_s > asleep.lock.longest_s:
            asleep.lock.longest_s = longest_s
        self._count(asleep, seconds, 0.0)

    def _count(self, asleep: _Sleep, seconds: float, variance: float) -> None:
        lock, what, waited = asleep.lock, asleep.wait.what, asleep.waited
        lock.wait.s += seconds
        lock.wait.variance += variance
        lock.blame[what.owner] = lock.blame.get(what.owner, 0.0) + seconds
        self._blamed.add(what.owner)
        waited[what.kind] = waited.get(what.kind, 0.0) + seconds


def _put_together(lock: EstimatedLock, owners: Iterable[int]) -> None:
    """They have ended: what is theirs is nobody's by name."""
    blame = lock.blame.copy()
    for tid in owners:
        blame[0] = blame.get(0, 0.0) + blame.pop(tid)
    lock.blame = blame
