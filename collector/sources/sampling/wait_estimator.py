"""Estimates wait times from samples, with their errors.

A thread in one wait in two samples waited all the time between them. A thread in that wait in only
one of the two counts half of that time. So the estimate has no bias, but each time is known only as
well as the samples lie close. The error is that of a count. Let n intervals of length d have a
thread that was not in the same wait at both ends. Then one standard deviation is d * sqrt(n / 2).
This holds for waits far shorter than d, which samples meet by chance. Each such wait makes two
intervals, with variance d^2 as of a Poisson count. The error of longer waits is smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Set

from msgspec import Struct, field

from locktop.collector.analysis.sampled_queues import QueueCounts
from locktop.collector.model import Kind
from locktop.collector.sources.sampling.nptl_objects import SyncObject
from locktop.collector.sources.sampling.wait_objects import SampledWait

#: Owners of a lock that are listed one by one, among ended threads.
_MAX_BLAMED = 500

Key = tuple[Kind, int]


class EstimatedTime(Struct):
    """Seconds and their variance."""

    s: float = 0.0
    variance: float = 0.0

    @property
    def error_s(self) -> float:
        """One standard deviation."""
        return math.sqrt(self.variance)


class EstimatedLock(Struct):
    """The estimates for one lock since the sampling began."""

    id: int
    sync_object: SyncObject  # as in the last sample that saw it
    wait: EstimatedTime = field(default_factory=EstimatedTime)
    met: int = 0  # number of waits that a sample met
    longest_s: float = 0.0  # at least
    #: Seconds by the owner's tid; 0: ended or unknown. A new dict replaces it when owners are
    #: merged.
    blame: dict[int, float] = field(default_factory=dict)
    waiting: int = 0  # threads in the last sample
    #: The number of the sample from which on threads wait; samples before are counted.
    waited_from: int = 0
    # Since the last call of take_queues():
    waited: int = 0  # samples with a waiting thread, as far as counted
    at_once: int = 0
    waits: int = 0


class _CountedWait(Struct):
    """A wait that goes on, and its counted part."""

    wait: SampledWait
    lock: EstimatedLock
    waited: dict[Kind, float]  # seconds waited by its thread
    counted_to: float  # the sums contain the wait up to here: time.monotonic()


class WaitEstimator:
    """Adds up samples.

    An unchanged wait costs nothing in a sample. The estimator counts a wait that goes on when the
    wait changes, or when a caller reads the sums.
    """

    def __init__(self, since: Callable[[SampledWait], float] = lambda wait: wait.since) -> None:
        """``since``: returns since when a wait goes on at least, time.monotonic()."""
        self._since = since
        self._locks: dict[Key, EstimatedLock] = {}
        self._by_thread: dict[int, dict[Kind, float]] = {}  # by Sample.life
        self._blamed: set[int] = set()  # tids
        self._ongoing: dict[int, _CountedWait] = {}  # by tid, from the last sample
        self._waits: Mapping[int, SampledWait] = {}
        self._sampled_s = self._settled_at = 0.0
        self._number = self._queues_taken = 0  # samples
        self._queues: dict[int, EstimatedLock] = {}  # by id; awaited since take_queues()
        self.first_at = 0.0  # time of the first sample: its waits had begun before

    def add(self, now: float, waits: Mapping[int, SampledWait]) -> None:
        """Add a sample that was taken at ``now`` (time.monotonic())."""
        before, before_at = self._waits, self._sampled_s
        self._number += 1
        self.first_at = self.first_at or now
        interval_s = now - before_at if before_at else 0.0
        for tid in [tid for tid, wait in before.items() if waits.get(tid) is not wait]:
            self._leave(tid, waits.get(tid), interval_s)
        self._waits, self._sampled_s = waits, now
        for tid, wait in [item for item in waits.items() if before.get(item[0]) is not item[1]]:
            self._enter(wait, before.get(tid), before_at, interval_s)

    @property
    def locks(self) -> Mapping[Key, EstimatedLock]:
        """The estimates of each lock, up to the last sample."""
        self._settle()
        return self._locks

    def take_queues(self) -> tuple[int, Mapping[int, QueueCounts]]:
        """Return the number of samples since the last call, and their counts by lock."""
        samples, queues = self._number - self._queues_taken, self._queues
        self._queues_taken = self._number
        self._queues = {id_: lock for id_, lock in queues.items() if lock.waiting}
        return samples, {id_: self._take_queue(lock) for id_, lock in queues.items()}

    def _take_queue(self, lock: EstimatedLock) -> QueueCounts:
        if lock.waiting:
            lock.waited += self._number + 1 - lock.waited_from
            lock.waited_from = self._number + 1
        counts = QueueCounts(waited=lock.waited, at_once=lock.at_once, waits=lock.waits)
        lock.waited = lock.waits = 0
        lock.at_once = lock.waiting
        return counts

    @property
    def wait_by_thread(self) -> Mapping[int, Mapping[Kind, float]]:
        """The wait time of each thread by Sample.life, up to the last sample, seconds."""
        self._settle()
        return self._by_thread

    def lock_of(self, wait: SampledWait) -> EstimatedLock:
        """Return the estimates for the awaited lock; its sums may be behind."""
        return self._locks[wait.sync_object.kind, wait.sync_object.address]

    def forget_threads(
        self, lives: Container[int], tids: Container[int], newcomers: Set[int]
    ) -> None:
        """Drop the wait times of ended threads; the sums of their locks keep them.

        Args:
            lives: Sample.life of the living threads.
            tids: ids of the living threads.
            newcomers: ids that new threads have now. They are not to blame for their predecessors.
        """
        self._settle()
        self._by_thread = {life: sums for life, sums in self._by_thread.items() if life in lives}
        for tid in self._blamed & newcomers:
            self._blamed.discard(tid)
            for lock in self._locks.values():
                if tid in lock.blame:
                    _make_anonymous(lock, [tid])
        for lock in self._locks.values():
            if len(lock.blame) > 2 * _MAX_BLAMED:
                self._merge_ended(lock, tids)

    def _merge_ended(self, lock: EstimatedLock, living: Container[int]) -> None:
        """Keep only those ended threads apart that were waited for most."""
        blame = lock.blame
        ended = sorted((tid for tid in blame if tid and tid not in living), key=blame.__getitem__)
        _make_anonymous(lock, ended[: max(len(blame) - _MAX_BLAMED, 0)])

    def _leave(self, tid: int, after: SampledWait | None, interval_s: float) -> None:
        """A wait is over, or is classified otherwise from now on."""
        counted = self._ongoing.pop(tid)
        lock = counted.lock
        lock.waiting -= 1
        if not lock.waiting:
            lock.waited += self._number - lock.waited_from
        self._count_to(counted, self._sampled_s)
        if after is None or after.seq != counted.wait.seq:
            self._count(counted, interval_s / 2, interval_s * interval_s / 2)

    def _enter(
        self, wait: SampledWait, before: SampledWait | None, before_at: float, interval_s: float
    ) -> None:
        lock = self._lock(wait)
        if not lock.waiting:
            lock.waited_from = self._number
            self._queues[lock.id] = lock
        lock.waiting += 1
        lock.at_once = max(lock.at_once, lock.waiting)
        waited = self._by_thread.setdefault(wait.life, {})
        counted = self._ongoing[wait.tid] = _CountedWait(
            wait=wait, lock=lock, waited=waited, counted_to=self._sampled_s
        )
        if before is not None and before.seq == wait.seq:
            counted.counted_to = before_at or self._sampled_s
            return
        lock.met += 1
        lock.waits += 1
        if interval_s:
            self._count(counted, interval_s / 2, interval_s * interval_s / 2)

    def _lock(self, wait: SampledWait) -> EstimatedLock:
        key = wait.sync_object.kind, wait.sync_object.address
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = EstimatedLock(
                id=len(self._locks) + 1, sync_object=wait.sync_object
            )
        lock.sync_object = wait.sync_object
        return lock

    def _settle(self) -> None:
        """Count the waits that go on, up to the last sample."""
        if self._settled_at == self._sampled_s:
            return
        self._settled_at = self._sampled_s
        for counted in self._ongoing.values():
            self._count_to(counted, self._sampled_s)

    def _count_to(self, counted: _CountedWait, moment: float) -> None:
        seconds = moment - counted.counted_to
        longest_s = moment - self._since(counted.wait)
        if longest_s > counted.lock.longest_s:
            counted.lock.longest_s = longest_s
        if seconds <= 0.0:
            return
        counted.counted_to = moment
        self._count(counted, seconds, 0.0)

    def _count(self, counted: _CountedWait, seconds: float, variance: float) -> None:
        lock, sync_object, waited = counted.lock, counted.wait.sync_object, counted.waited
        lock.wait.s += seconds
        lock.wait.variance += variance
        lock.blame[sync_object.owner] = lock.blame.get(sync_object.owner, 0.0) + seconds
        self._blamed.add(sync_object.owner)
        waited[sync_object.kind] = waited.get(sync_object.kind, 0.0) + seconds


def _make_anonymous(lock: EstimatedLock, owners: Iterable[int]) -> None:
    """Merge the shares of owners that have ended: tid 0 stands for all of them."""
    blame = lock.blame.copy()
    for tid in owners:
        blame[0] = blame.get(0, 0.0) + blame.pop(tid)
    lock.blame = blame
