"""From ticks and ids to the model: builds threads and locks out of one reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from operator import itemgetter

from locktop.collector import blame
from locktop.collector.abi import HeldEntry, LockRow, Site, lib
from locktop.collector.analysis import classify, rates
from locktop.collector.around import Around
from locktop.collector.clock import Clock
from locktop.collector.decode import RawEvent, RawMark
from locktop.collector.frames import StackFrames
from locktop.collector.given_names import GivenNames
from locktop.collector.model import (
    CONTENTION_KINDS,
    Blame,
    Event,
    Frame,
    Held,
    Kind,
    Lock,
    LockRates,
    Mark,
    Thread,
    ThreadState,
    Wait,
    WaitStack,
)
from locktop.collector.reading import RawThread, Reading
from locktop.collector.sanitize import clean
from locktop.collector.symbols.lock_names import LockNames
from locktop.collector.symbols.resolver import Resolver
from locktop.collector.tasks import Task, Tasks
from locktop.collector.thread_times import ThreadTimes

KINDS: dict[int, Kind] = {
    lib.LT_KIND_MUTEX: Kind.MUTEX,
    lib.LT_KIND_RWLOCK: Kind.RWLOCK,
    lib.LT_KIND_SPIN: Kind.SPIN,
    lib.LT_KIND_SEM: Kind.SEM,
    lib.LT_KIND_COND: Kind.COND,
    lib.LT_KIND_BARRIER: Kind.BARRIER,
    lib.LT_KIND_JOIN: Kind.JOIN,
    lib.LT_KIND_ONCE: Kind.ONCE,
    lib.LT_KIND_FUTEX: Kind.FUTEX,
    lib.LT_KIND_CUSTOM: Kind.CUSTOM,
}
_BY_NUMBER = [KINDS.get(number, Kind.CUSTOM) for number in range(lib.LT_KINDS)]
_of_contention = itemgetter(*(n for n, kind in KINDS.items() if kind in CONTENTION_KINDS))
_MOST_STACKS_OF_A_LOCK = 64
_KIND_SHIFT: int = lib.LT_KIND_SHIFT
_WAIT_TIMED: int = lib.LT_WAIT_TIMED
_WAIT_SHARED: int = lib.LT_WAIT_SHARED
_WAIT_PSHARED: int = lib.LT_WAIT_PSHARED
_HELD_SHARED: int = lib.LT_HELD_SHARED
_RECURSIVE = 1  # PTHREAD_MUTEX_RECURSIVE, in the low bits of a mutex's kind
_TYPE_MASK = 3
#: Bits of a mutex's kind (glibc, nptl/pthreadP.h): robust, PTHREAD_PRIO_INHERIT.
_FREED_AT_EXIT = 16 | 32
#: PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP; glibc treats PTHREAD_RWLOCK_PREFER_WRITER_NP as if
#: it preferred readers, who may then read-lock again.
_WRITERS_FIRST = 2
#: A lock that nobody lists for as long as this is held unlisted; for less it changes hands.
_HAND_OVER_S = 0.1
_RECORD_TIMEOUT: int = lib.LT_RECORD_TIMEOUT

ThreadKey = tuple[int, int]  # tid, birth


@dataclass(slots=True)
class Totals:
    """What the next look compares with."""

    now: int  # ticks
    contention_s: float
    idle_s: float
    spin_s: float  # of contention_s, by waiters that never sleep
    cpu_s: float


@dataclass(slots=True)
class LockNow:
    """Who waits for one lock and who holds it, in ticks."""

    waiters: list[tuple[int, int, int]] = field(default_factory=list)  # ticks, tid, stack
    holders: list[int] = field(default_factory=list)
    held: list[blame.Holder] = field(default_factory=list)
    published: list[int] = field(default_factory=list)  # holders as the waiters saw them
    hold_ticks: int = 0  # of timed holds that go on
    hold_max: int = 0
    holds_timed: int = 0


_NOBODY = LockNow()


def kind_of(key: int) -> Kind | None:
    """Return the kind in the key of a lock, None for one that there is not."""
    return KINDS.get(key >> _KIND_SHIFT)


class Picture:
    """Builds the model's objects, look after look."""

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
        self._totals: dict[ThreadKey, Totals] = {}
        self._thread_names: dict[ThreadKey, str] = {}
        self._going_on: dict[int, tuple[int, int]] = {}  # lock -> ticks waited, ticks held
        self._locks: dict[int, tuple[LockRow, tuple[int, int], Lock]] = {}
        self._before = 0
        self._times = ThreadTimes()

    # ---- threads ----

    def threads(
        self,
        raws: Mapping[int, RawThread],
        now: Mapping[int, LockNow],
        tasks: Mapping[int, Task],
        tasks_at_s: float,
        counts: bool,
    ) -> tuple[Thread, ...]:
        """Return the threads in order of tid. ``tasks_at_s`` is when the tasks were read;
        ``counts``: whether the library counts waits (it does not while it is dormant)."""
        totals: dict[ThreadKey, Totals] = {}
        around = Around(raws, now, tasks)
        self._times.begin(tasks_at_s)
        threads = []
        for tid in sorted(raws.keys() | tasks.keys()):
            raw, task = raws.get(tid), tasks.get(tid)
            threads.append(self._thread(tid, raw, task, around, totals, counts))
        self._totals = totals
        return tuple(threads)

    def _thread(
        self,
        tid: int,
        raw: RawThread | None,
        task: Task | None,
        around: Around,
        totals: dict[ThreadKey, Totals],
        counts: bool,
    ) -> Thread:
        key = (tid, raw.block.birth if raw else 0)
        wait = self._wait(raw, around) if raw and task else None
        wait_s = self._wait_s(raw, wait)
        contention_s, idle_s = rates.split(wait_s)
        spin_s = wait_s.get(Kind.SPIN, 0.0)
        before = self._totals.get(key)
        cpu_s = task.cpu_s if task else before.cpu_s if before else 0.0
        now = totals[key] = Totals(raw.now if raw else 0, contention_s, idle_s, spin_s, cpu_s)
        contended = idle = asleep = 0.0
        if before:
            interval_s = self._clock.seconds(now.now - before.now)
            waited_s, spun_s = contention_s - before.contention_s, spin_s - before.spin_s
            contended = rates.share(waited_s, interval_s)
            idle = rates.share(idle_s - before.idle_s, interval_s)
            asleep = rates.share(waited_s - spun_s, interval_s) if spun_s else contended
        time = self._times.of(key, task, asleep, idle, counts and raw is not None)
        uses, signals = around.done(raw)
        return Thread(
            tid,
            self._thread_name(key, raw, task),
            task is not None,
            classify.state(wait.kind if wait else None, task.state if task else ""),
            wait,
            self._holds(raw),
            wait_s,
            cpu_s,
            sum(_of_contention(raw.acquisitions)) if raw else 0,
            sum(_of_contention(raw.contended)) if raw else 0,
            contended,
            idle,
            time.cpu if time else 0.0,
            uses,
            signals,
            time=time,
        )

    def waiting_threads(
        self, raws: Mapping[int, RawThread], tasks: Mapping[int, Task]
    ) -> tuple[Thread, ...]:
        """Return all threads with their waits and what they hold and use, and nothing else."""
        around = Around(raws, locks_now(raws.values(), tasks), tasks)
        found = []
        for tid in raws.keys() | tasks.keys():
            raw = raws.get(tid)
            wait = self._wait(raw, around) if raw else None
            uses, signals = around.done(raw)
            found.append(
                Thread(
                    tid, "", tid in tasks, ThreadState.OTHER, wait, self._holds(raw), {}, 0.0, 0, 0,
                    uses=uses, signals=signals,
                )
            )  # fmt: skip
        return tuple(found)

    def _thread_name(self, key: ThreadKey, raw: RawThread | None, task: Task | None) -> str:
        if task is not None:
            name = task.name
        else:
            own = raw.block.name.partition(b"\0")[0] if raw else b""
            name = clean(own) if own else self._thread_names.get(key, "")
        self._thread_names[key] = name
        return name

    def _wait(self, raw: RawThread, around: Around) -> Wait | None:
        wait = raw.wait
        kind = kind_of(wait.key) if wait else None
        if wait is None or kind is None:
            return None
        known: tuple[int, ...] = ()
        if kind in CONTENTION_KINDS and wait.lock:  # 0 stands for many
            published = around.locks.get(wait.lock, _NOBODY).published
            known = around.holders(wait.lock)
            known = known or tuple(self._presumed(published, raw.now - wait.since))
        return Wait(
            wait.lock,
            kind,
            self._clock.seconds(raw.now - wait.since),
            known,
            wait.stack,
            wait.site,
            wait.seq,
            bool(wait.flags & _WAIT_TIMED),
            bool(wait.flags & _WAIT_SHARED),
            wait.holder,
            bool(wait.flags & _WAIT_PSHARED),
            around.awaited(wait),
            wait.parties if kind is Kind.BARRIER else 0,
            kind not in CONTENTION_KINDS,
        )

    def forget_former_owners(self, now: Mapping[int, LockNow], tasks: Tasks) -> None:
        """A thread that was woken for a lock may not run for long where the machine is busy: until
        then nobody has the lock, whoever had it when its waiters came."""
        for lock in now.values():
            longest = max((ticks for ticks, _, _ in lock.waiters), default=0)
            if (
                not lock.holders
                and self._presumed(lock.published, longest)
                and not tasks.are_asleep(tid for _, tid, _ in lock.waiters)
            ):
                lock.published.clear()

    def _presumed(self, published: list[int], waited: int) -> list[int]:
        """Return who has a lock that nobody lists: it was taken before the library looked, or it
        changes hands just now. Only in the first case have all waiters seen the same owner, and
        for longer than a change takes (ticks)."""
        lasts = waited > self._clock.ticks(_HAND_OVER_S)
        return published if lasts and len(published) == 1 else []

    def _wait_s(self, raw: RawThread | None, wait: Wait | None) -> dict[Kind, float]:
        if raw is None:
            return {}
        ticks = raw.wait_ticks
        waited = zip(compress(_BY_NUMBER, ticks), filter(None, ticks), strict=True)
        seconds = {kind: self._clock.seconds(total) for kind, total in waited}
        if wait is not None:
            seconds[wait.kind] = seconds.get(wait.kind, 0.0) + wait.for_s
        return seconds

    def _holds(self, raw: RawThread | None) -> tuple[Held, ...]:
        if raw is None or not raw.held:
            return ()
        return tuple([self._held(raw, entry) for entry in raw.held])

    def _held(self, raw: RawThread, entry: HeldEntry) -> Held:
        return Held(
            lock=entry.lock,
            site=entry.site,
            for_s=self._clock.seconds(raw.now - entry.since) if entry.since else None,
            depth=entry.depth,
            shared=bool(entry.flags & _HELD_SHARED),
        )

    # ---- locks ----

    def locks(
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
        found.sort(key=classify.most_wait_first)
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
        now = now or _NOBODY
        waits = [ticks for ticks, _, _ in now.waiters]
        waiting, longest, holding = sum(waits), max(waits, default=0), now.hold_ticks
        # The counters take every acquisition for an ended one and estimate its hold: put right.
        holding = max(0, holding - now.holds_timed * row.hold_mean)
        if waiting or holding:
            going_on[row.lock] = (waiting, holding)
        wait_before, hold_before = before or (0, 0)
        sites = reading.sites.get(row.lock, ())
        holders = now.holders or self._presumed(now.published, longest)
        # By the kind alone; analysis/classify.py looks closer.
        idle = kind not in CONTENTION_KINDS
        stacks = self._wait_stacks(sites, now, idle)
        seconds = self._clock.seconds
        held = now.held or [(tid, 0, 0) for tid in holders]
        because = self._blame(row, kind, reading, waiting, held, frames)
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
                seconds(row.changed_hold_ticks + holding - hold_before),
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
        self, sites: list[Site] | tuple[()], now: LockNow, idle: bool
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
        return tuple(found[:_MOST_STACKS_OF_A_LOCK])

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

    def renamed(self, locks: tuple[Lock, ...], frames: StackFrames) -> tuple[Lock, ...]:
        """Return the locks with the names known by now."""
        rows = {row.lock: row for row, _, _ in self._locks.values()}
        return tuple(
            replace(
                lock,
                name=self._lock_name(row, lock.kind, lock.wait_stacks, frames, lock.waiters),
            )
            if (row := rows.get(lock.id))
            else lock
            for lock in locks
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
        given = self._given.of(row.kind << _KIND_SHIFT | row.address)
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

    # ---- events ----

    def event(self, raw: RawEvent, now: int) -> Event | None:
        """Return a record as the model has it; None when its kind is not known."""
        kind = KINDS.get(raw.kind)
        if kind is None:
            return None
        return Event(
            tid=raw.tid,
            lock=raw.lock,
            kind=kind,
            ago_s=self._clock.seconds(now - raw.start),
            wait_s=self._clock.seconds(raw.wait),
            hold_s=self._clock.seconds(raw.hold) if raw.hold else None,
            stack=raw.stack,
            holder=raw.holder,
            site=raw.site,
            timed_out=raw.type == _RECORD_TIMEOUT,
        )

    def mark(self, raw: RawMark, now: int) -> Mark:
        """Return a mark as the model has it."""
        return Mark(raw.tid, self._clock.seconds(now - raw.start), clean(raw.text))


def _unheld_s(blame: Sequence[Blame]) -> float:
    return sum([one.wait_s for one in blame if not one.tid and not one.site])


def _largest_mean(sites: list[Site] | tuple[()]) -> int:
    """Return the largest mean of a stack's waits, ticks: a sum may be read before the maximum that
    belongs to it, and no mean is longer than the longest wait."""
    return max([site.wait_ticks // site.count for site in sites if site.count], default=0)


def held_by_lock(threads: Iterable[RawThread]) -> dict[int, list[tuple[RawThread, HeldEntry]]]:
    """Return by lock who lists it as held. Threads are read one after the other, so a lock that
    changed hands meanwhile is listed by several; it has one owner, or readers, and the last thread
    that was read knows best."""
    found: dict[int, list[tuple[RawThread, HeldEntry]]] = {}
    for thread in threads:
        for entry in thread.held:
            listed = found.setdefault(entry.lock, [])
            if listed and not (entry.flags & listed[-1][1].flags & _HELD_SHARED):
                listed.clear()
            if not listed or listed[-1][0] is not thread:  # one may read-lock it twice
                listed.append((thread, entry))
    return found


def locks_now(threads: Iterable[RawThread], tasks: Mapping[int, Task]) -> dict[int, LockNow]:
    """Return by lock what goes on at it."""
    threads = list(threads)
    now: dict[int, LockNow] = {}
    for lock, listed in held_by_lock(threads).items():
        held = now[lock] = LockNow()
        for thread, entry in listed:
            held.holders.append(thread.block.tid)
            own_wait = thread.wait.lock if thread.wait else 0
            held.held.append((thread.block.tid, entry.site, own_wait))
            if entry.since:
                ticks = max(0, thread.now - entry.since)
                held.hold_ticks += ticks
                held.hold_max = max(held.hold_max, ticks)
                held.holds_timed += 1
    for thread in threads:
        wait, tid = thread.wait, thread.block.tid
        if wait is not None and tid in tasks:
            waited = now.setdefault(wait.lock, LockNow())
            waited.waiters.append((max(0, thread.now - wait.since), tid, wait.stack))
            contends = KINDS.get(wait.key >> _KIND_SHIFT) in CONTENTION_KINDS
            if contends and wait.holder in tasks and wait.holder not in waited.published:
                waited.published.append(wait.holder)
    return now
