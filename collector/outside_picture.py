"""The picture of a process that is sampled from outside: what is not known there stays empty."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from locktop.collector.analysis import classify, rates, time_split
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
    Wait,
    WaitStack,
)
from locktop.collector.outside_waits import OutsideWait
from locktop.collector.sampled import Sampled, SampledLock
from locktop.collector.samples import Sample
from locktop.collector.symbols.lock_names import LockNames
from locktop.collector.symbols.resolver import Resolver

_NO_FRAMES: Callable[[], Sequence[Frame]] = tuple


@dataclass(frozen=True, slots=True)
class _Totals:
    """Of one thread at the last look."""

    cpu_s: float
    runnable_s: float
    contention_s: float
    idle_s: float


class OutsidePicture:
    """Builds the model's objects, look after look."""

    def __init__(
        self,
        resolver: Resolver,
        sampled: Sampled,
        frames: Callable[[int], tuple[Frame, ...]],
    ) -> None:
        """``frames`` gives those of a stack, by its id."""
        self._frames = frames
        self._names = LockNames(resolver)
        self._sampled = sampled
        self._totals: dict[int, _Totals] = {}  # by Sample.life
        self._waited: dict[int, float] = {}  # by lock id
        self._stacks: Mapping[int, int] = {}

    def threads(
        self,
        samples: Mapping[int, Sample],
        waits: Mapping[int, OutsideWait],
        stacks: Mapping[int, int],
        now: float,
        interval_s: float,
    ) -> tuple[Thread, ...]:
        """Return the threads in order of tid. ``stacks``: by tid, of those that wait; ``now``: when
        the last sample was taken (time.monotonic())."""
        self._stacks = stacks
        held: dict[int, list[Held]] = {}
        for lock, owner in self._owners(waits).items():
            held.setdefault(owner, []).append(Held(lock, 0, None))
        totals: dict[int, _Totals] = {}
        threads = [
            self._thread(samples[tid], waits.get(tid), held.get(tid, []), now, interval_s, totals)
            for tid in sorted(samples)
        ]
        self._totals = totals
        return tuple(threads)

    def _owners(self, waits: Mapping[int, OutsideWait]) -> dict[int, int]:
        return {
            self._sampled.lock_of(wait).id: wait.what.owner
            for wait in waits.values()
            if wait.what.owner
        }

    def _thread(
        self,
        sample: Sample,
        outside: OutsideWait | None,
        held: Sequence[Held],
        now: float,
        interval_s: float,
        totals: dict[int, _Totals],
    ) -> Thread:
        wait = self._wait(outside, now) if outside is not None else None
        sums = self._sampled.by_thread.get(sample.life, {})
        wait_s = {kind: one.s for kind, one in sums.items()}
        contention_s, idle_s = rates.split(wait_s)
        now_is = _Totals(sample.cpu_s, sample.runnable_s, contention_s, idle_s)
        known = self._totals.get(sample.life)
        before = known or now_is
        totals[sample.life] = now_is
        wait_share = rates.share(contention_s - before.contention_s, interval_s)
        idle_share = rates.share(idle_s - before.idle_s, interval_s)
        used = Used(sample.cpu_s - before.cpu_s, sample.runnable_s - before.runnable_s, disk_s=None)
        return Thread(
            tid=sample.tid,
            name=sample.name,
            alive=True,
            state=classify.state(wait.kind if wait else None, sample.state),
            waiting_for=wait,
            holds=tuple(held),
            wait_s=wait_s,
            cpu_s=sample.cpu_s,
            acquisitions=0,
            contended=0,
            wait_share=wait_share,
            idle_share=idle_share,
            time=time_split.split(interval_s, used, wait_share, idle_share) if known else None,
            cpu_share=rates.share(sample.cpu_s - before.cpu_s, interval_s),
            uses=None,
        )

    def _wait(self, outside: OutsideWait, now: float) -> Wait:
        what = outside.what
        known = (what.owner,) if what.owner and what.kind in CONTENTION_KINDS else ()
        return Wait(
            lock=self._sampled.lock_of(outside).id,
            kind=what.kind,
            for_s=max(0.0, now - outside.since),
            holders=known,
            stack=self._stacks.get(outside.tid, 0),
            site=0,
            seq=outside.seq,
            timed=outside.futex.timed,
            shared=what.kind is Kind.RWLOCK and not what.writes,
            holder_seen=what.owner,
            pshared=what.shared,
            awaits=what.awaits,
            parties=what.parties,
            idle=what.kind not in CONTENTION_KINDS,
        )

    # ---- locks ----

    def locks(
        self, waits: Mapping[int, OutsideWait], now: float, interval_s: float
    ) -> tuple[Lock, ...]:
        """Return the locks that were seen waited for, in the order of Snapshot.locks."""
        waiters: dict[int, list[OutsideWait]] = {}
        for wait in waits.values():
            waiters.setdefault(self._sampled.lock_of(wait).id, []).append(wait)
        before, self._waited = self._waited, {}
        found = []
        for lock in self._sampled.locks.values():
            self._waited[lock.id] = lock.wait.s
            grown_s = lock.wait.s - before.get(lock.id, 0.0)
            found.append(self._lock(lock, waiters.get(lock.id, []), grown_s, now, interval_s))
        found.sort(key=classify.most_wait_first)
        return tuple(found)

    def _lock(
        self,
        lock: SampledLock,
        waiting: Sequence[OutsideWait],
        grown_s: float,
        now: float,
        interval_s: float,
    ) -> Lock:
        what = lock.what
        longest_first = sorted(waiting, key=lambda wait: wait.since)
        stacks = self._wait_stacks(waiting, now)
        owners = {wait.what.owner for wait in waiting} - {0}
        is_contention = what.kind in CONTENTION_KINDS
        return Lock(
            id=lock.id,
            address=what.address,
            kind=what.kind,
            name=self._names.name(
                lock.id, 0, what.kind, what.address, _NO_FRAMES, lambda: self._caller(stacks)
            ),
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

    def _wait_stacks(self, waiting: Sequence[OutsideWait], now: float) -> tuple[WaitStack, ...]:
        """Of the waits that go on: those that are over had theirs when nobody looked."""
        sums: dict[int, tuple[int, float]] = {}
        for wait in waiting:
            stack = self._stacks.get(wait.tid, 0)
            if stack:
                count, wait_s = sums.get(stack, (0, 0.0))
                sums[stack] = count + 1, wait_s + max(0.0, now - wait.since)
        most_first = sorted(sums.items(), key=lambda one: -one[1][1])
        return tuple(WaitStack(stack, count, wait_s) for stack, (count, wait_s) in most_first)

    def _caller(self, stacks: Sequence[WaitStack]) -> Sequence[Frame]:
        return self._frames(stacks[0].stack) if stacks else ()


def _blame(lock: SampledLock) -> tuple[Blame, ...]:
    most_first = sorted(lock.blame.items(), key=lambda one: -one[1])
    return tuple(Blame(owner, 0, seconds) for owner, seconds in most_first)
