"""From ticks and ids to the model: the locks of one reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from locktop.collector.analysis import rates
from locktop.collector.analysis.idle import classifier
from locktop.collector.model import (
    CONTENTION_KINDS,
    Blame,
    Draft,
    Frame,
    Kind,
    Lock,
    LockRates,
    WaitStack,
)
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.kinds import KIND_SHIFT, KINDS
from locktop.collector.shm.layout import LockRow, SiteSum
from locktop.collector.shm.lock_names import GivenNames
from locktop.collector.shm.reader import Reading
from locktop.collector.sources.preload import blame
from locktop.collector.sources.preload.lock_state import NOBODY, LockNow, presumed
from locktop.collector.sources.preload.stack_table import StackFrames
from locktop.collector.symbols.lock_naming import LockNames
from locktop.collector.symbols.resolver import Resolver

_MAX_STACKS_OF_A_LOCK = 64
_RECURSIVE = 1  # PTHREAD_MUTEX_RECURSIVE, in the low bits of a mutex's kind
_TYPE_MASK = 3
#: Bits of a mutex's kind (glibc, nptl/pthreadP.h): robust, PTHREAD_PRIO_INHERIT.
_FREED_AT_EXIT = 16 | 32
#: PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP; glibc treats PTHREAD_RWLOCK_PREFER_WRITER_NP as if
#: it preferred readers, who may then read-lock again.
_WRITERS_FIRST = 2


class LockBuilder:
    """Builds the model's locks, look after look."""

    def __init__(
        self,
        clock: Clock,
        resolver: Resolver,
        given: GivenNames,
        merged: Callable[[int], tuple[Frame, ...]],
    ) -> None:
        """``merged`` gives by tid the stack of a wait with its Python functions, if it is known."""
        self._clock = clock
        self._resolver = resolver
        self._given = given
        self._merged = merged
        self._names = LockNames(resolver)
        self._going_on: dict[int, tuple[int, int]] = {}  # lock -> ticks waited, ticks held
        self._locks: dict[int, tuple[LockRow, tuple[int, int], Lock]] = {}
        self._before = 0

    def of(
        self, reading: Reading, now: Mapping[int, LockNow], frames: StackFrames
    ) -> tuple[Lock, ...]:
        """Return the locks in the order of Snapshot.locks."""
        interval_s = self._clock.seconds(reading.now - self._before) if self._before else 0.0
        self._before = reading.now
        going_on: dict[int, tuple[int, int]] = {}
        cache: dict[int, tuple[LockRow, tuple[int, int], Lock]] = {}
        for row in reading.rows:
            lock = self._lock(row, now.get(row.lock), reading, interval_s, going_on, frames)
            if lock is not None:
                cache[row.lock] = (row, self._names_version, lock)
        self._going_on, self._locks = going_on, cache
        found = [entry[2] for entry in cache.values()]
        found.sort(key=classifier.most_wait_first)
        return tuple(found)

    @property
    def _names_version(self) -> tuple[int, int]:
        return self._resolver.version, self._given.version

    def _lock(
        self,
        row: LockRow,
        now: LockNow | None,
        reading: Reading,
        interval_s: float,
        going_on: dict[int, tuple[int, int]],
        frames: StackFrames,
    ) -> Lock | None:
        kind = KINDS.get(row.kind) if row.lock else Kind.MUTEX
        if kind is None or (row.lock == 0 and not row.acquisitions):
            return None
        before = self._going_on.get(row.lock)
        if now is None and before is None:
            known = self._locks.get(row.lock)
            if known and known[0] == row and known[1] == self._names_version:
                return known[2]  # nothing happened to it
        now = now or NOBODY
        waits = [ticks for ticks, _, _ in now.waiters]
        waiting, longest, holding = sum(waits), max(waits, default=0), now.hold_ticks
        # The counters take every acquisition for an ended one and estimate its hold: put right.
        holding = max(0, holding - now.holds_timed * row.hold_mean)
        if waiting or holding:
            going_on[row.lock] = (waiting, holding)
        wait_before, hold_before = before or (0, 0)
        sites = reading.sites.get(row.lock, ())
        holders = now.holders or presumed(now.published, longest, self._clock)
        # By the kind alone; collector/analysis/idle/classifier.py looks closer.
        idle = kind not in CONTENTION_KINDS
        stacks = self._wait_stacks(sites, now, idle)
        seconds = self._clock.seconds
        held = now.held or [(tid, 0, 0) for tid in holders]
        because = self._blame(row, kind, reading, waiting, held, frames)
        held_s = seconds(row.changed_hold_ticks + holding - hold_before)
        if now.held and not row.changed_acquisitions and not row.foreign_releases:
            held_s = interval_s * len(now.held)  # whoever has it had it all the while
        earlier = self._locks.get(row.lock)
        return Lock(
            id=row.lock,
            address=row.address,
            kind=kind,
            name=self._lock_name(row, kind, stacks, frames, [tid for _, tid, _ in now.waiters]),
            acquisitions=row.acquisitions,
            contended=row.contended,
            trylock_failed=row.trylock_failed,
            signals=row.signals,
            unheard=row.unheard,
            wait_s=(wait_s := seconds(row.wait_ticks + waiting)),
            wait_max_s=seconds(max(row.wait_max, longest, _largest_mean(sites))),
            hold_s=seconds(row.hold_ticks + holding),
            hold_timed=row.hold_timed,
            hold_max_s=seconds(max(row.hold_max, now.hold_max)),
            holders=tuple(holders),
            waiters=tuple([tid for _, tid, _ in sorted(now.waiters, reverse=True)]),
            wait_stacks=stacks,
            blame=because,
            destroyed=bool(row.destroyed),
            rates=rates.lock_rates(
                interval_s,
                row.changed_acquisitions,
                row.changed_contended,
                seconds(row.changed_wait_ticks + waiting - wait_before),
                held_s,
                row.changed_signals,
                _unheld_s(because) - (_unheld_s(earlier[2].blame) if earlier else 0.0),
            )
            if interval_s
            else LockRates(),
            recursive=kind is Kind.MUTEX and row.type & _TYPE_MASK == _RECURSIVE,
            writers_first=kind is Kind.RWLOCK and row.type == _WRITERS_FIRST,
            foreign_releases=bool(row.foreign_releases),
            generation=row.generation,
            first_value=row.type - 1 if kind is Kind.SEM else -1,
            freed_at_exit=kind is Kind.MUTEX and bool(row.type & _FREED_AT_EXIT),
            idle=idle,
            idle_s=wait_s if idle else 0.0,
        )

    def _wait_stacks(
        self, sites: list[SiteSum] | tuple[()], now: LockNow, idle: bool
    ) -> tuple[WaitStack, ...]:
        if not sites and not now.waiters:
            return ()
        by_stack = {site.stack: [site.count, site.wait_ticks] for site in sites}
        for ticks, _, stack in now.waiters:
            if stack:  # not ended, so not counted yet
                by_stack.setdefault(stack, [0, 0])[1] += ticks
        found = [
            WaitStack(stack, count, self._clock.seconds(ticks), idle)
            for stack, (count, ticks) in by_stack.items()
        ]
        found.sort(key=lambda entry: (-entry.wait_s, -entry.count, entry.stack))
        return tuple(found[:_MAX_STACKS_OF_A_LOCK])

    def _blame(
        self,
        row: LockRow,
        kind: Kind,
        reading: Reading,
        waiting: int,
        holders: Sequence[blame.Holder],
        frames: StackFrames,
    ) -> tuple[Blame, ...]:
        waited = row.wait_ticks + waiting
        if not waited or not row.lock or kind not in CONTENTION_KINDS:
            return ()

        found = blame.shares(
            waited,
            reading.blame.get(row.lock, ()),
            blame.pending(row, reading.locks_now, reading.header.wait_shift),
            holders,
            frames.addresses,
        )
        return tuple(
            Blame(tid, site, self._clock.seconds(ticks), through)
            for (tid, site, through), ticks in found
        )

    def rename(self, snapshot: Draft, frames: StackFrames) -> None:
        """Fill in the names of locks that are known by now."""
        rows = {row.lock: row for row, _, _ in self._locks.values()}
        snapshot.locks = tuple(
            replace(
                lock,
                name=self._lock_name(row, lock.kind, lock.wait_stacks, frames, lock.waiters),
            )
            if (row := rows.get(lock.id)) is not None
            else lock
            for lock in snapshot.locks
        )

    def _lock_name(
        self,
        row: LockRow,
        kind: Kind,
        stacks: tuple[WaitStack, ...],
        frames: StackFrames,
        waiters: Iterable[int],
    ) -> str:
        if row.lock == 0:
            return "other locks"
        given = self._given.of(row.kind << KIND_SHIFT | row.address)
        if given:
            return given

        def most_wait() -> tuple[Frame, ...]:
            return frames.of(stacks[0].stack) if stacks else ()

        def made_at() -> tuple[Frame, ...]:
            return frames.of(row.made_at)

        def waiter() -> tuple[Frame, ...]:
            return next(filter(None, map(self._merged, waiters)), ())

        return self._names.name(
            row.lock, row.generation, kind, row.address, made_at, most_wait, waiter
        )


def _unheld_s(blame: Sequence[Blame]) -> float:
    return sum([one.wait_s for one in blame if not one.tid and not one.site])


def _largest_mean(sites: list[SiteSum] | tuple[()]) -> int:
    """Return the largest mean of a stack's waits, ticks: a sum may be read before the maximum that
    belongs to it, and no mean is longer than the longest wait."""
    return max([site.wait_ticks // site.count for site in sites if site.count], default=0)
