"""Builds the model's objects of a sampled process; figures that samples do not show are None."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from locktop.collector.analysis import rates, time_split
from locktop.collector.analysis.idle import classifier
from locktop.collector.analysis.time_split import Used
from locktop.collector.model import (
    CONTENTION_KINDS,
    WAITS_ALONE,
    Blame,
    Frame,
    Held,
    Kind,
    Lock,
    Thread,
    ThreadState,
    TimeSplit,
    Wait,
    WaitStack,
)
from locktop.collector.sources.sampling.sampled_wait import SampledWait
from locktop.collector.sources.sampling.sampler import Sample
from locktop.collector.sources.sampling.wait_estimator import EstimatedLock, WaitEstimator
from locktop.collector.symbols.lock_naming import LockIdentity, LockNames, LockStacks
from locktop.collector.symbols.resolver import Resolver

_NOTHING: Mapping[Kind, float] = {}
#: The split of a thread that slept all the time; the wait for disks is not measured.
_ALL_CONTENDED = TimeSplit(contended=1.0, unknown=("disk",))
_ALL_IDLE = TimeSplit(idle=1.0, unknown=("disk",))
_NEARLY_ALL = 0.999999  # sums of times have rounding errors


class _LastThread(NamedTuple):  # each scan makes one for each thread
    """A thread at the last scan."""

    sample: Sample
    sampled_wait: SampledWait | None
    thread: Thread
    is_steady: bool  # unchanged since the scan before the last one


class _LastLock(NamedTuple):  # each scan makes one for each lock
    """A lock at the last scan."""

    lock: Lock
    blame: Mapping[int, float]

    def is_unchanged(self, lock: EstimatedLock, name: str) -> bool:
        """Return whether the old object still describes a lock without waiters."""
        last = self.lock
        return (
            lock.wait.s == last.wait_s
            and lock.met == last.contended
            and lock.blame is self.blame
            and name == last.name
            and not last.waiters
            and not last.rates.wait
        )


class SamplingBuilder:
    """Builds the model's objects in each scan."""

    def __init__(
        self,
        resolver: Resolver,
        estimator: WaitEstimator,
        since: Callable[[SampledWait], float],
        frames: Callable[[int], tuple[Frame, ...]],
        merged: Callable[[SampledWait], tuple[Frame, ...]],
    ) -> None:
        """Args:
        resolver: names addresses.
        estimator: the estimates.
        since: returns the moment since which a wait goes on at least, time.monotonic().
        frames: returns the frames of a stack by its id.
        merged: returns the frames of a wait with Python functions, if these are known.
        """
        self._frames = frames
        self._merged = merged
        self._names = LockNames(resolver, generations=False)
        self._estimator = estimator
        self._since = since
        self._last_threads: dict[int, _LastThread] = {}  # by Sample.life
        self._last_locks: dict[int, _LastLock] = {}  # by id
        self._stacks: Mapping[int, int] = {}

    def threads(
        self,
        samples: Mapping[int, Sample],
        waits: Mapping[int, SampledWait],
        stacks: Mapping[int, int],
        now: float,
        interval_s: float,
        is_recheck: bool = False,
    ) -> tuple[Thread, ...]:
        """Return the threads in order of tid.

        Args:
            samples: the last sample.
            waits: its waits, by tid.
            stacks: ids of the stacks of waiting threads, by tid.
            now: when the last sample was taken, time.monotonic().
            interval_s: seconds since the last scan.
            is_recheck: a further sample of the same scan, which later scans do not compare with.
        """
        self._stacks = stacks
        held: dict[int, list[Held]] = {}
        for lock, owner in self._owners(waits).items():
            held.setdefault(owner, []).append(Held(lock=lock, site=0, duration_s=None))
        waited = self._estimator.wait_by_thread
        before_all, self._last_threads = self._last_threads, {}
        threads = []
        for tid in sorted(samples):
            sample, sampled_wait = samples[tid], waits.get(tid)
            before = before_all.get(sample.life)
            wait = self._wait(sampled_wait, before, now) if sampled_wait is not None else None
            holds = tuple(held[tid]) if tid in held else ()
            wait_s = dict(waited.get(sample.life, _NOTHING))
            goes_on = (
                before is not None
                and before.sample is sample
                and before.sampled_wait is sampled_wait
            )
            if before is not None and goes_on and before.is_steady:
                thread = replace(before.thread, waiting_for=wait, holds=holds, wait_s=wait_s)
            else:
                thread = self._changed_thread(sample, wait, holds, wait_s, before, interval_s)
            self._last_threads[sample.life] = _LastThread(
                sample=sample, sampled_wait=sampled_wait, thread=thread, is_steady=goes_on
            )
            threads.append(thread)
        if is_recheck:
            self._last_threads = before_all
        return tuple(threads)

    def ended_owners(
        self, samples: Mapping[int, Sample], waits: Mapping[int, SampledWait], first_tid: int
    ) -> tuple[Thread, ...]:
        """Return the threads that ended while they had a lock, with nothing but that lock.

        The word of a lock names its owner until the release. So the lock of an owner that has ended
        was never released. But a fork copies locks of the parent's threads. Their ids are lower
        than that of the process.

        Args:
            samples: the last sample.
            waits: its waits, by tid.
            first_tid: the process's pid in its own pid namespace.
        """
        held: dict[int, dict[int, Held]] = {}
        for wait in waits.values():
            owner = wait.sync_object.owner
            if owner > first_tid and owner not in samples and not wait.sync_object.shared:
                lock = self._estimator.lock_of(wait).id
                held.setdefault(owner, {})[lock] = Held(lock=lock, site=0, duration_s=None)
        return tuple(
            Thread(
                tid=owner,
                name="",
                alive=False,
                state=ThreadState.OTHER,
                waiting_for=None,
                holds=tuple(of_owner.values()),
                wait_s={},
                cpu_s=0.0,
                acquisitions=None,
                contended=None,
            )
            for owner, of_owner in held.items()
        )

    def _owners(self, waits: Mapping[int, SampledWait]) -> dict[int, int]:
        return {
            self._estimator.lock_of(wait).id: wait.sync_object.owner
            for wait in waits.values()
            if wait.sync_object.owner
        }

    def _changed_thread(
        self,
        sample: Sample,
        wait: Wait | None,
        held: tuple[Held, ...],
        wait_s: Mapping[Kind, float],
        before: _LastThread | None,
        interval_s: float,
    ) -> Thread:
        wait_share = idle_share = cpu_share = 0.0
        time = None
        if before is not None:
            contention_s = idle_s = 0.0
            waited_before_s = before.thread.wait_s
            for kind, seconds in wait_s.items():
                grown_s = seconds - waited_before_s.get(kind, 0.0)
                if kind in CONTENTION_KINDS:
                    contention_s += grown_s
                else:
                    idle_s += grown_s
            wait_share = rates.share(contention_s, interval_s)
            idle_share = rates.share(idle_s, interval_s)
            if before.sample is sample and wait_share >= _NEARLY_ALL:
                time = _ALL_CONTENDED
            elif before.sample is sample and idle_share >= _NEARLY_ALL:
                time = _ALL_IDLE
            else:
                used = _cpu_use(before.sample, sample)
                time = time_split.split(interval_s, used, wait_share, idle_share)
                cpu_share = rates.share(used.ran_s, interval_s)
        state = classifier.state(wait.kind if wait is not None else None, sample.state)
        return Thread(
            tid=sample.tid,
            name=sample.name,
            alive=True,
            state=state,
            waiting_for=wait,
            holds=held,
            wait_s=wait_s,
            cpu_s=sample.cpu_s,
            acquisitions=None,
            contended=None,
            wait_share=wait_share,
            idle_share=idle_share,
            cpu_share=cpu_share,
            uses=None,
            time=time,
        )

    def _wait(self, sampled_wait: SampledWait, before: _LastThread | None, now: float) -> Wait:
        stack = self._stacks.get(sampled_wait.tid, 0)
        duration_s = now - self._since(sampled_wait)
        duration_s = duration_s if duration_s > 0.0 else 0.0
        if before is not None and before.sampled_wait is sampled_wait:
            former_wait = before.thread.waiting_for
            if former_wait is not None and former_wait.stack == stack:
                return replace(former_wait, duration_s=duration_s)
        sync_object = sampled_wait.sync_object
        contends = sync_object.kind in CONTENTION_KINDS or bool(sync_object.owner)
        return Wait(
            lock=self._estimator.lock_of(sampled_wait).id,
            kind=sync_object.kind,
            duration_s=duration_s,
            holders=(sync_object.owner,) if sync_object.owner else (),
            stack=stack,
            site=0,
            seq=sampled_wait.seq,
            timed=sampled_wait.futex.timed,
            shared=sync_object.kind is Kind.RWLOCK and not sync_object.writes,
            holder_seen=sync_object.owner,
            pshared=sync_object.shared,
            awaits=sync_object.awaits,
            parties=sync_object.parties,
            idle=not contends,
            is_lower_bound=sampled_wait.renewals > 0
            or sampled_wait.since <= self._estimator.first_at,
            renewals=sampled_wait.renewals,
            later_reads=sampled_wait.later_reads,
        )

    # ---- locks ----

    def locks(
        self, waits: Mapping[int, SampledWait], now: float, interval_s: float
    ) -> tuple[Lock, ...]:
        """Return the locks that samples saw waiters for, in the order of Snapshot.locks."""
        waiters: dict[int, list[SampledWait]] = {}
        for wait in waits.values():
            waiters.setdefault(self._estimator.lock_of(wait).id, []).append(wait)
        before, self._last_locks = self._last_locks, {}
        locks = []
        for lock in self._estimator.locks.values():
            waiting, former = waiters.get(lock.id, ()), before.get(lock.id)
            stacks = self._wait_stacks(waiting, now) if waiting else ()
            name = self._name(lock, waiting, stacks)
            if former is not None and not waiting and former.is_unchanged(lock, name):
                built = former.lock
            else:
                grown_s = lock.wait.s - (former.lock.wait_s if former is not None else 0.0)
                built = self._lock(lock, name, waiting, stacks, grown_s, interval_s)
            self._last_locks[lock.id] = _LastLock(lock=built, blame=lock.blame)
            locks.append(built)
        locks.sort(key=classifier.most_wait_first)
        return tuple(locks)

    def crowded(self, waits: Iterable[SampledWait]) -> frozenset[int]:
        """Return the ids of the semaphores for which several threads wait at once."""
        return frozenset(
            self._estimator.lock_of(wait).id for wait in waits if wait.sync_object.waiters > 1
        )

    def _name(
        self, lock: EstimatedLock, waiting: Sequence[SampledWait], stacks: Sequence[WaitStack]
    ) -> str:
        def waiter() -> Sequence[Frame]:
            return next(filter(None, map(self._merged, waiting)), ())

        sync_object = lock.sync_object
        return self._names.name(
            LockIdentity(lock.id, 0, sync_object.kind, sync_object.address),
            LockStacks(most_wait=lambda: self._caller_frames(stacks), waiter=waiter),
        )

    def _lock(
        self,
        lock: EstimatedLock,
        name: str,
        waiting: Sequence[SampledWait],
        stacks: tuple[WaitStack, ...],
        grown_s: float,
        interval_s: float,
    ) -> Lock:
        sync_object = lock.sync_object
        longest_first = sorted(waiting, key=self._since)
        owners = {wait.sync_object.owner for wait in waiting} - {0}
        is_contention = sync_object.kind in CONTENTION_KINDS or bool(owners)
        return Lock(
            id=lock.id,
            address=sync_object.address,
            kind=sync_object.kind,
            name=name,
            contended=lock.met,
            wait_s=lock.wait.s,
            wait_error_s=lock.wait.error_s,
            wait_max_s=lock.longest_s,
            wait_max_is_lower_bound=True,
            hold_max_s=None,
            holders=tuple(sorted(owners)) if is_contention else (),
            waiters=tuple(wait.tid for wait in longest_first),
            wait_stacks=stacks,
            blame=_blame(lock) if is_contention else (),
            rates=replace(WAITS_ALONE, wait=max(grown_s, 0.0) / interval_s if interval_s else 0.0),
            recursive=sync_object.recursive,
            freed_at_exit=sync_object.robust,
            readers=max([wait.sync_object.readers for wait in waiting], default=0),
            idle=not is_contention,
            idle_s=0.0 if is_contention else lock.wait.s,
        )

    def _wait_stacks(self, waiting: Sequence[SampledWait], now: float) -> tuple[WaitStack, ...]:
        """Return the stacks of waits that go on; MetStacks adds those of waits that are over."""
        sums: dict[int, tuple[int, float]] = {}
        for wait in waiting:
            stack = self._stacks.get(wait.tid, 0)
            if stack:
                count, wait_s = sums.get(stack, (0, 0.0))
                sums[stack] = count + 1, wait_s + max(0.0, now - wait.since)
        return _most_first(sums, waiting[0].sync_object.kind)

    def _caller_frames(self, stacks: Sequence[WaitStack]) -> Sequence[Frame]:
        return self._frames(stacks[0].stack) if stacks else ()


def rename_locks(locks: Sequence[Lock], names: Mapping[int, str]) -> tuple[Lock, ...]:
    """Return the locks with these names, by id."""
    return tuple(replace(lock, name=names.get(lock.id, lock.name)) for lock in locks)


def add_stacks(locks: Sequence[Lock], threads: Sequence[Thread]) -> tuple[Lock, ...]:
    """Return the locks with the stacks that these threads have in their waits."""
    kinds = {lock.id: lock.kind for lock in locks}
    sums: dict[int, dict[int, tuple[int, float]]] = {}
    for thread in threads:
        wait = thread.waiting_for
        if wait is not None and wait.stack and wait.lock in kinds:
            of_lock = sums.setdefault(wait.lock, {})
            count, wait_s = of_lock.get(wait.stack, (0, 0.0))
            of_lock[wait.stack] = count + 1, wait_s + wait.duration_s
    return tuple(
        replace(lock, wait_stacks=_most_first(sums[lock.id], lock.kind))
        if lock.id in sums
        else lock
        for lock in locks
    )


def _most_first(sums: Mapping[int, tuple[int, float]], kind: Kind) -> tuple[WaitStack, ...]:
    """Return the stacks, the longest wait first. ``sums``: number of waits and seconds by stack."""
    idle = kind not in CONTENTION_KINDS
    most_first = sorted(sums.items(), key=lambda item: -item[1][1])
    return tuple(
        WaitStack(stack=stack, count=count, wait_s=wait_s, idle=idle)
        for stack, (count, wait_s) in most_first
    )


def _cpu_use(before: Sample, now: Sample) -> Used:
    return Used(
        ran_s=now.cpu_s - before.cpu_s,
        queued_s=now.runnable_s - before.runnable_s,
        disk_s=None,
    )


def _blame(lock: EstimatedLock) -> tuple[Blame, ...]:
    most_first = sorted(lock.blame.items(), key=lambda item: -item[1])
    return tuple(Blame(tid=owner, site=0, wait_s=seconds) for owner, seconds in most_first)
