"""Builds the model's locks from the ticks and ids of one reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from locktop.collector.analysis import rates
from locktop.collector.analysis.idle import classifier
from locktop.collector.model import (
    CONTENTION_KINDS,
    Blame,
    Draft,
    Frame,
    Histogram,
    Kind,
    LazyBlame,
    Lock,
    LockRates,
    PackedHistogram,
    WaitStack,
    unheld_s,
)
from locktop.collector.model.kinds import EXCLUSIVE_KINDS, TIMED_BY_WAKES_KINDS
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.histograms import HOLDS, WAITS
from locktop.collector.shm.kinds import KIND_SHIFT, KINDS, numbers_of
from locktop.collector.shm.layout import LockRow, SiteSum
from locktop.collector.shm.lock_names import ProgramLockNames
from locktop.collector.shm.reader import Reading
from locktop.collector.sources.preload import blame
from locktop.collector.sources.preload.lock_state import NO_STATE, LockState, presumed_holders
from locktop.collector.sources.preload.stack_table import StackFrames
from locktop.collector.symbols.lock_naming import LockIdentity, LockNames, LockStacks
from locktop.collector.symbols.resolver import Resolver

_MAX_STACKS_OF_A_LOCK = 64
_RECURSIVE = 1  # PTHREAD_MUTEX_RECURSIVE, in the low bits of a mutex's kind
_TYPE_MASK = 3
_EXCLUSIVE = numbers_of(EXCLUSIVE_KINDS)
#: Bits of a mutex's kind (glibc, nptl/pthreadP.h): robust, PTHREAD_PRIO_INHERIT.
_FREED_AT_EXIT = 16 | 32
#: PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP; glibc treats PTHREAD_RWLOCK_PREFER_WRITER_NP as if
#: it preferred readers, who may then read-lock again.
_WRITERS_FIRST = 2


class LockBuilder:
    """Builds the model's locks in each scan."""

    def __init__(
        self,
        clock: Clock,
        resolver: Resolver,
        given: ProgramLockNames,
        merged: Callable[[int], tuple[Frame, ...]],
    ) -> None:
        """``merged`` returns by tid a wait's stack with Python functions, if known."""
        self._clock = clock
        self._resolver = resolver
        self._given = given
        self._merged = merged
        self._names = LockNames(resolver)
        #: by lock: ticks of the waits, and of the holds, that go on
        self._ongoing: dict[int, tuple[int, int]] = {}
        self._locks: dict[int, tuple[LockRow, tuple[int, int], Lock]] = {}
        self._before = 0

    def build(
        self, reading: Reading, states: Mapping[int, LockState], frames: StackFrames
    ) -> tuple[Lock, ...]:
        """Return the locks in the order of Snapshot.locks."""
        interval_s = self._clock.seconds(reading.now - self._before) if self._before else 0.0
        self._before = reading.now
        ongoing: dict[int, tuple[int, int]] = {}
        cache: dict[int, tuple[LockRow, tuple[int, int], Lock]] = {}
        for row in reading.rows:
            lock = self._lock(row, states.get(row.lock), reading, interval_s, ongoing, frames)
            if lock is not None:
                cache[row.lock] = (row, self._names_version, lock)
        self._ongoing, self._locks = ongoing, cache
        locks = [entry[2] for entry in cache.values()]
        locks.sort(key=classifier.most_wait_first)
        return tuple(locks)

    @property
    def _names_version(self) -> tuple[int, int]:
        return self._resolver.version, self._given.version

    def _lock(
        self,
        row: LockRow,
        state: LockState | None,
        reading: Reading,
        interval_s: float,
        ongoing: dict[int, tuple[int, int]],
        frames: StackFrames,
    ) -> Lock | None:
        kind = KINDS.get(row.kind) if row.lock else Kind.MUTEX
        if kind is None or (row.lock == 0 and not row.acquisitions):
            return None
        before = self._ongoing.get(row.lock)
        if state is None and before is None and (unchanged := self._same_lock(row)) is not None:
            return unchanged
        state = state or NO_STATE
        waits = [ticks for ticks, _, _ in state.waiters]
        waiting, longest, seconds = sum(waits), max(waits, default=0), self._clock.seconds
        holding = _uncounted_ticks(state, row)
        if waiting or holding:
            ongoing[row.lock] = (waiting, holding)
        grown = (waiting - before[0], holding - before[1]) if before else (waiting, holding)
        sites = reading.sites.get(row.lock, ())
        holders = state.holders or presumed_holders(state.published, longest, self._clock)
        idle = kind not in CONTENTION_KINDS  # analysis/idle/classifier.py refines this
        stacks = self._wait_stacks(sites, state, idle)
        held = state.held or [(tid, 0, 0) for tid in holders]
        blamed = self._blame(row, kind, reading, waiting, held, frames)
        lock = Lock(
            id=row.lock,
            address=row.address,
            kind=kind,
            name=self._lock_name(row, kind, stacks, frames, [tid for _, tid, _ in state.waiters]),
            acquisitions=row.acquisitions,
            contended=row.contended,
            trylock_failed=row.trylock_failed,
            signals=row.signals,
            unheard=row.unheard,
            wait_s=(wait_s := seconds(row.wait_ticks + waiting)),
            wait_max_s=seconds(max(row.wait_max, longest, _largest_mean(sites))),
            hold_s=seconds(row.hold_ticks + holding),
            hold_timed=row.hold_timed,
            hold_max_s=seconds(max(row.hold_max, state.hold_max)),
            holders=tuple(holders),
            waiters=tuple([tid for _, tid, _ in sorted(state.waiters, reverse=True)]),
            wait_stacks=stacks,
            blame=blamed,
            destroyed=bool(row.destroyed) and not (state.waiters or state.holders),
            rates=self._rates(row, state, grown, blamed, interval_s),
            recursive=kind is Kind.MUTEX and row.type & _TYPE_MASK == _RECURSIVE,
            writers_first=kind is Kind.RWLOCK and row.type == _WRITERS_FIRST,
            foreign_releases=bool(row.foreign_releases),
            generation=row.generation,
            freed_at_exit=kind is Kind.MUTEX and bool(row.type & _FREED_AT_EXIT),
            idle=idle,
            idle_s=wait_s if idle else 0.0,
            wait_histogram=self._histogram(row, reading, WAITS),
            hold_histogram=self._histogram(row, reading, HOLDS),
        )
        return _fit_to_kind(lock, row)

    def add_wakers(
        self,
        lock: Lock,
        reading: Reading,
        site_of: Callable[[int], int],
        times_holds: bool,
    ) -> Lock:
        """Return a futex or a semaphore with the figures of the threads that woke its waiters.

        Args:
            lock: the lock, which the wakers held.
            reading: the reading that ``lock`` was built from.
            site_of: returns the address that stands for the stack of a wake.
            times_holds: whether a hold after a wait always ends with a wake.
        """
        cached = self._locks.get(lock.id)
        if cached is None:
            return lock
        row, seconds = cached[0], self._clock.seconds
        waiting, _ = self._ongoing.get(lock.id, (0, 0))
        blamed = self._distribute(row, reading, waiting, (), lambda stack: (site_of(stack),))
        if not times_holds:
            return replace(lock, blame=blamed)
        return replace(
            lock,
            blame=blamed,
            hold_s=seconds(row.hold_ticks),
            hold_timed=row.hold_timed,
            hold_max_s=seconds(row.hold_max),
            hold_histogram=self._histogram(row, reading, HOLDS),
        )

    def _same_lock(self, row: LockRow) -> Lock | None:
        cached = self._locks.get(row.lock)
        is_same = cached and cached[0] == row and cached[1] == self._names_version
        return cached[2] if cached and is_same else None

    def _histogram(self, row: LockRow, reading: Reading, part: int) -> Histogram | None:
        counted, total = row.wait_counted, row.contended
        if part == HOLDS:
            counted, total = row.hold_counted, row.hold_timed
        if not counted:
            return None
        left_out = max(total - counted, 0) if reading.lines_left_out else 0
        packed = reading.lines.packed_histogram(row.lock, part)
        return PackedHistogram(packed=packed, hz=self._clock.hz, left_out=left_out)

    def _rates(
        self,
        row: LockRow,
        state: LockState,
        grown: tuple[int, int],
        blamed: Sequence[Blame],
        interval_s: float,
    ) -> LockRates:
        """``grown``: ticks by which the waits, and the holds, that go on have grown."""
        if not interval_s:
            return LockRates()
        seconds, last = self._clock.seconds, self._locks.get(row.lock)
        waiting, holding = grown
        held_s = seconds(row.changed_hold_ticks + holding)
        if state.held and not row.changed_acquisitions and not row.foreign_releases:
            held_s = interval_s * len(state.held)  # its holders held it all the while
        if row.kind in _EXCLUSIVE:
            # The estimate takes each nested acquisition of a recursive mutex as a hold of its own.
            held_s = min(held_s, interval_s)
        return rates.lock_rates(
            interval_s,
            row.changed_acquisitions,
            row.changed_contended,
            seconds(row.changed_wait_ticks + waiting),
            held_s,
            row.changed_signals,
            unheld_s(blamed) - (unheld_s(last[2].blame) if last else 0.0),
        )

    def _wait_stacks(
        self, sites: list[SiteSum] | tuple[()], state: LockState, idle: bool
    ) -> tuple[WaitStack, ...]:
        if not sites and not state.waiters:
            return ()
        by_stack = {site.stack: [site.count, site.wait_ticks] for site in sites}
        for ticks, _, stack in state.waiters:
            if stack in by_stack:  # the wait goes on, so it is not counted yet
                by_stack[stack][1] += ticks
            elif stack:
                by_stack[stack] = [0, ticks]
        entries = [
            WaitStack(stack=stack, count=count, wait_s=self._clock.seconds(ticks), idle=idle)
            for stack, (count, ticks) in by_stack.items()
        ]
        entries.sort(key=lambda entry: (-entry.wait_s, -entry.count, entry.stack))
        return tuple(entries[:_MAX_STACKS_OF_A_LOCK])

    def _blame(
        self,
        row: LockRow,
        kind: Kind,
        reading: Reading,
        waiting: int,
        holders: Sequence[blame.Holder],
        frames: StackFrames,
    ) -> tuple[Blame, ...] | LazyBlame:
        if kind not in CONTENTION_KINDS:
            return ()
        return self._distribute(row, reading, waiting, holders, frames.addresses)

    def _distribute(
        self,
        row: LockRow,
        reading: Reading,
        waiting: int,
        holders: Sequence[blame.Holder],
        addresses_of: Callable[[int], Sequence[int]],
    ) -> tuple[Blame, ...] | LazyBlame:
        waited = row.wait_ticks + waiting
        if not waited or not row.lock:
            return ()
        shares = blame.shares(
            waited,
            reading.charges.get(row.lock),
            blame.pending(row, reading.locks_now, reading.header.wait_shift),
            holders,
            addresses_of,
        )
        return blame.ChargedBlame((shares,), self._clock.hz)

    def rename(self, snapshot: Draft, frames: StackFrames) -> None:
        """Fill in the names of locks that are known by now."""
        snapshot.locks = tuple([self._rename_lock(lock, frames) for lock in snapshot.locks])

    def _rename_lock(self, lock: Lock, frames: StackFrames) -> Lock:
        cached = self._locks.get(lock.id)
        if cached is None:
            return lock
        name = self._lock_name(cached[0], lock.kind, lock.wait_stacks, frames, lock.waiters)
        return lock if name == lock.name else replace(lock, name=name)

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
        given = self._given.name(row.kind << KIND_SHIFT | row.address)
        if given:
            return given

        def most_wait() -> tuple[Frame, ...]:
            return frames.frames(stacks[0].stack) if stacks else ()

        def made_at() -> Iterator[Frame]:
            for address in frames.addresses(row.made_at) if row.made_at else ():
                yield from self._resolver.frames(address)

        def waiter() -> tuple[Frame, ...]:
            return next(filter(None, map(self._merged, waiters)), ())

        return self._names.name(
            LockIdentity(row.lock, row.generation, kind, row.address),
            LockStacks(made_at, most_wait, waiter),
        )


def _fit_to_kind(lock: Lock, row: LockRow) -> Lock:
    """Return the lock with the figures that only locks of its kind have, and without others."""
    if lock.kind in TIMED_BY_WAKES_KINDS:
        return _remove_holds(lock)
    return _set_life_counts(lock, row) if lock.kind is Kind.SEM else lock


def _remove_holds(futex: Lock) -> Lock:
    """Return the lock without the holds, which only a futex that is a lock has."""
    return replace(
        futex,
        hold_s=0.0,
        hold_timed=0,
        hold_max_s=0.0,
        hold_histogram=None,
        rates=replace(futex.rates, hold=0.0),
    )


def _set_life_counts(semaphore: Lock, row: LockRow) -> Lock:
    return replace(
        semaphore,
        life_acquisitions=row.life_acquisitions,
        life_signals=row.life_signals,
        first_value=row.type - 1 if row.type else None,
        parent_posts=row.parent_posts,
    )


def _largest_mean(sites: list[SiteSum] | tuple[()]) -> int:
    """Return the largest mean wait of a call stack, in ticks.

    A sum may be read before its maximum. No mean is longer than the longest wait, so the mean is a
    lower bound of the maximum.
    """
    return max([site.wait_ticks // site.count for site in sites if site.count], default=0)


def _uncounted_ticks(state: LockState, row: LockRow) -> int:
    """The ticks of present holds that the counters lack.

    The counters count every acquisition as ended and estimate its hold.
    """
    return max(0, state.hold_ticks - state.holds_timed * row.hold_mean)
