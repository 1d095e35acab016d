"""The picture of a process that is sampled from outside: what is not known there stays empty."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from locktop.collector.analysis import rates, time_split
from locktop.collector.analysis.idle import classifier
from locktop.collector.analysis.time_split import Used
from locktop.collector.model import (
    CONTENTION_KINDS,
    Blame,
    Frame,
    Held,
    Kind,
    Lock,
    LockRates,
    Thread,
    TimeSplit,
    Wait,
    WaitStack,
)
from locktop.collector.sources.sampling.sampler import Sample
from locktop.collector.sources.sampling.wait_estimator import EstimatedLock, WaitEstimator
from locktop.collector.sources.sampling.wait_objects import ObjectWait
from locktop.collector.symbols.lock_naming import LockNames
from locktop.collector.symbols.resolver import Resolver

_NOTHING: Mapping[Kind, float] = {}
#: Of a thread that slept all the time; disks are not asked about.
_ALL_CONTENDED = TimeSplit(contended=1.0, unknown=("disk",))
_ALL_IDLE = TimeSplit(idle=1.0, unknown=("disk",))
_NEARLY_ALL = 0.999999  # times are sums
_NO_FRAMES: Callable[[], Sequence[Frame]] = tuple


class _Seen(NamedTuple):  # one for each thread in each look
    """A thread at the last look."""

    sample: Sample
    native_stacks: ObjectWait | None
    thread: Thread
    is_steady: bool  # it did nothing else since the look before that one


class _Told(NamedTuple):  # one for each lock in each look
    """A lock at the last look."""

    told: Lock
    blame: Mapping[int, float]

    def is_as_it_was(self, lock: EstimatedLock, name: str) -> bool:
        """Tell whether a lock that nobody waits for is told by the same object again."""
        told = self.told
        return (
            lock.wait.s == told.wait_s
            and lock.met == told.contended
            and lock.blame is self.blame
            and name == told.name
            and not told.waiters
            and not told.rates.wait
        )


class SamplingBuilder:
    """Builds the model's objects, look after look."""

    def __init__(
        self,
        resolver: Resolver,
        sampled: WaitEstimator,
        frames: Callable[[int], tuple[Frame, ...]],
        merged: Callable[[ObjectWait], tuple[Frame, ...]],
    ) -> None:
        """``frames`` gives those of a stack, by its id, ``merged`` those of a wait with its Python
        functions, if they are known."""
        self._frames = frames
        self._merged = merged
        self._names = LockNames(resolver, generations=False)
        self._estimator = sampled
        self._seen: dict[int, _Seen] = {}  # by Sample.life, at the last look
        self._locks: dict[int, _Told] = {}  # by id
        self._stacks: Mapping[int, int] = {}

    def threads(
        self,
        samples: Mapping[int, Sample],
        waits: Mapping[int, ObjectWait],
        stacks: Mapping[int, int],
        now: float,
        interval_s: float,
        again: bool = False,
    ) -> tuple[Thread, ...]:
        """Return the threads in order of tid. ``stacks``: by tid, of those that wait; ``now``: when
        the last sample was taken (time.monotonic()); ``again``: one more of
        the same look, of which later looks know nothing."""
        self._stacks = stacks
        held: dict[int, list[Held]] = {}
        for lock, owner in self._owners(waits).items():
            held.setdefault(owner, []).append(Held(lock, 0, None))
        waited = self._estimator.by_thread
        before_all, self._seen = self._seen, {}
        found = []
        for tid in sorted(samples):
            sample, native_stacks = samples[tid], waits.get(tid)
            before = before_all.get(sample.life)
            wait = self._wait(native_stacks, before, now) if native_stacks is not None else None
            holds = tuple(held[tid]) if tid in held else ()
            wait_s = dict(waited.get(sample.life, _NOTHING))
            goes_on = (
                before is not None
                and before.sample is sample
                and before.native_stacks is native_stacks
            )
            if before is not None and goes_on and before.is_steady:
                thread = replace(before.thread, waiting_for=wait, holds=holds, wait_s=wait_s)
            else:
                thread = self._moved(sample, wait, holds, wait_s, before, interval_s)
            self._seen[sample.life] = _Seen(sample, native_stacks, thread, goes_on)
            found.append(thread)
        if again:
            self._seen = before_all
        return tuple(found)

    def _owners(self, waits: Mapping[int, ObjectWait]) -> dict[int, int]:
        return {
            self._estimator.lock_of(wait).id: wait.what.owner
            for wait in waits.values()
            if wait.what.owner
        }

    def _moved(
        self,
        sample: Sample,
        wait: Wait | None,
        held: tuple[Held, ...],
        wait_s: Mapping[Kind, float],
        before: _Seen | None,
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
                used = _used(before.sample, sample)
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
            acquisitions=0,
            contended=0,
            wait_share=wait_share,
            idle_share=idle_share,
            cpu_share=cpu_share,
            uses=None,
            time=time,
        )

    def _wait(self, native_stacks: ObjectWait, before: _Seen | None, now: float) -> Wait:
        stack, duration_s = self._stacks.get(native_stacks.tid, 0), now - native_stacks.since
        duration_s = duration_s if duration_s > 0.0 else 0.0
        if before is not None and before.native_stacks is native_stacks:
            known = before.thread.waiting_for
            if known is not None and known.stack == stack:
                return replace(known, duration_s=duration_s)
        what = native_stacks.what
        contends = what.kind in CONTENTION_KINDS
        return Wait(
            lock=self._estimator.lock_of(native_stacks).id,
            kind=what.kind,
            duration_s=duration_s,
            holders=(what.owner,) if what.owner and contends else (),
            stack=stack,
            site=0,
            seq=native_stacks.seq,
            timed=native_stacks.futex.timed,
            shared=what.kind is Kind.RWLOCK and not what.writes,
            holder_seen=what.owner,
            pshared=what.shared,
            awaits=what.awaits,
            parties=what.parties,
            idle=not contends,
            is_lower_bound=native_stacks.since <= self._estimator.first_at,
        )

    # ---- locks ----

    def locks(
        self, waits: Mapping[int, ObjectWait], now: float, interval_s: float
    ) -> tuple[Lock, ...]:
        """Return the locks that were seen waited for, in the order of Snapshot.locks."""
        waiters: dict[int, list[ObjectWait]] = {}
        for wait in waits.values():
            waiters.setdefault(self._estimator.lock_of(wait).id, []).append(wait)
        before, self._locks = self._locks, {}
        found = []
        for lock in self._estimator.locks.values():
            waiting, known = waiters.get(lock.id, ()), before.get(lock.id)
            stacks = self._wait_stacks(waiting, now) if waiting else ()
            name = self._name(lock, waiting, stacks)
            if known is not None and not waiting and known.is_as_it_was(lock, name):
                told = known.told
            else:
                grown_s = lock.wait.s - (known.told.wait_s if known is not None else 0.0)
                told = self._lock(lock, name, waiting, stacks, grown_s, interval_s)
            self._locks[lock.id] = _Told(told, lock.blame)
            found.append(told)
        found.sort(key=classifier.most_wait_first)
        return tuple(found)

    def _name(
        self, lock: EstimatedLock, waiting: Sequence[ObjectWait], stacks: Sequence[WaitStack]
    ) -> str:
        def waiter() -> Sequence[Frame]:
            return next(filter(None, map(self._merged, waiting)), ())

        what = lock.what
        return self._names.name(
            lock.id, 0, what.kind, what.address, _NO_FRAMES, lambda: self._caller(stacks), waiter
        )

    def _lock(
        self,
        lock: EstimatedLock,
        name: str,
        waiting: Sequence[ObjectWait],
        stacks: tuple[WaitStack, ...],
        grown_s: float,
        interval_s: float,
    ) -> Lock:
        what = lock.what
        longest_first = sorted(waiting, key=lambda wait: wait.since)
        owners = {wait.what.owner for wait in waiting} - {0}
        is_contention = what.kind in CONTENTION_KINDS
        return Lock(
            id=lock.id,
            address=what.address,
            kind=what.kind,
            name=name,
            acquisitions=0,
            contended=lock.met,
            trylock_failed=0,
            wait_s=lock.wait.s,
            wait_error_s=lock.wait.error_s,
            wait_max_s=lock.longest_s,
            hold_s=0.0,
            hold_timed=0,
            hold_max_s=0.0,
            holders=tuple(sorted(owners)) if is_contention else (),
            waiters=tuple(wait.tid for wait in longest_first),
            wait_stacks=stacks,
            blame=_blame(lock) if is_contention else (),
            rates=LockRates(wait=max(grown_s, 0.0) / interval_s if interval_s else 0.0),
            recursive=what.recursive,
            freed_at_exit=what.robust,
            idle=not is_contention,
            idle_s=0.0 if is_contention else lock.wait.s,
        )

    def _wait_stacks(self, waiting: Sequence[ObjectWait], now: float) -> tuple[WaitStack, ...]:
        """Of the waits that go on: those that are over had theirs when nobody looked."""
        sums: dict[int, tuple[int, float]] = {}
        for wait in waiting:
            stack = self._stacks.get(wait.tid, 0)
            if stack:
                count, wait_s = sums.get(stack, (0, 0.0))
                sums[stack] = count + 1, wait_s + max(0.0, now - wait.since)
        return _most_first(sums, waiting[0].what.kind)

    def _caller(self, stacks: Sequence[WaitStack]) -> Sequence[Frame]:
        return self._frames(stacks[0].stack) if stacks else ()


def with_names(locks: Sequence[Lock], names: Mapping[int, str]) -> tuple[Lock, ...]:
    """Return the locks with these names, by id."""
    return tuple(replace(lock, name=names.get(lock.id, lock.name)) for lock in locks)


def with_stacks_of(locks: Sequence[Lock], threads: Sequence[Thread]) -> tuple[Lock, ...]:
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
    """``sums``: by stack how many waits, and their seconds."""
    idle = kind not in CONTENTION_KINDS
    most_first = sorted(sums.items(), key=lambda one: -one[1][1])
    return tuple(WaitStack(stack, count, wait_s, idle) for stack, (count, wait_s) in most_first)


def _used(before: Sample, now: Sample) -> Used:
    return Used(now.cpu_s - before.cpu_s, now.runnable_s - before.runnable_s, None)


def _blame(lock: EstimatedLock) -> tuple[Blame, ...]:
    most_first = sorted(lock.blame.items(), key=lambda one: -one[1])
    return tuple(Blame(owner, 0, seconds) for owner, seconds in most_first)
