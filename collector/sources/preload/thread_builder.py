"""From ticks and ids to the model: the threads of one reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import compress
from operator import itemgetter

from msgspec.structs import replace

from locktop.collector.analysis import rates
from locktop.collector.analysis.idle import classifier
from locktop.collector.linux.threads import KernelThread
from locktop.collector.model import CONTENTION_KINDS, Held, Kind, Thread, ThreadState, Use, Wait
from locktop.collector.native import lib
from locktop.collector.sanitize import clean
from locktop.collector.shm import layout
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.kinds import BY_NUMBER, KINDS, kind_of
from locktop.collector.shm.layout import HeldEntry, WaitBlock
from locktop.collector.shm.reader import RawThread
from locktop.collector.sources.preload.lock_state import NOBODY, LockNow, locks_now, presumed
from locktop.collector.sources.preload.scan_context import ScanContext, has_signalled
from locktop.collector.sources.probes.time_accounting import ThreadTimes

_of_contention = itemgetter(*(n for n, kind in KINDS.items() if kind in CONTENTION_KINDS))
_WAIT_TIMED: int = lib.LT_WAIT_TIMED
_WAIT_SHARED: int = lib.LT_WAIT_SHARED
_WAIT_PSHARED: int = lib.LT_WAIT_PSHARED
_HELD_SHARED: int = lib.LT_HELD_SHARED

ThreadKey = tuple[int, int]  # tid, birth


@dataclass(slots=True)
class _Counted:
    """What a thread has counted, in the model's units: worked out once for each RawThread, which
    stays the same object while the thread sleeps on."""

    raw: RawThread | None
    wait_s: Mapping[Kind, float]  # of the waits that are over
    contention_s: float
    idle_s: float
    acquisitions: int
    contended: int
    uses: list[layout.UseRecord]
    signals: bool  # see Thread.signals


_NOTHING = _Counted(None, {}, 0.0, 0.0, 0, 0, [], False)


@dataclass(slots=True)
class _Totals:
    """What the next look compares with."""

    counted: _Counted
    task: KernelThread | None
    thread: Thread
    now: int  # ticks
    contention_s: float
    idle_s: float
    spin_s: float  # of contention_s, by waiters that never sleep


class ThreadBuilder:
    """Builds the model's threads, look after look."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._totals: dict[ThreadKey, _Totals] = {}
        self._names: dict[ThreadKey, str] = {}
        self._times = ThreadTimes()

    def of(
        self,
        raws: Mapping[int, RawThread],
        now: Mapping[int, LockNow],
        tasks: Mapping[int, KernelThread],
        tasks_at_s: float,
        counts: bool,
    ) -> tuple[Thread, ...]:
        """Return the threads in order of tid. ``tasks_at_s`` is when the tasks were read;
        ``counts``: whether the library counts waits (it does not while it is dormant)."""
        totals: dict[ThreadKey, _Totals] = {}
        context = ScanContext(raws, now, tasks)
        self._times.begin(tasks_at_s)
        threads = []
        for tid in sorted(raws.keys() | tasks.keys()):
            raw, task = raws.get(tid), tasks.get(tid)
            threads.append(self._thread(tid, raw, task, context, totals, counts))
        self._totals = totals
        return tuple(threads)

    def _thread(
        self,
        tid: int,
        raw: RawThread | None,
        task: KernelThread | None,
        context: ScanContext,
        totals: dict[ThreadKey, _Totals],
        counts: bool,
    ) -> Thread:
        key = (tid, raw.block.birth if raw else 0)
        before = self._totals.get(key)
        if before is not None and task is not None and task is before.task:
            again = self._still_waits(key, before, raw, task, context, counts)
            if again is not None:
                before.thread, totals[key] = again, before
                return again
        counted = before.counted if before else _NOTHING
        if counted.raw is not raw:
            counted = self._counted(raw)
        wait = self._wait(raw, context) if raw and task else None
        wait_s, contention_s, idle_s = counted.wait_s, counted.contention_s, counted.idle_s
        if wait is not None:
            wait_s = {**wait_s, wait.kind: wait_s.get(wait.kind, 0.0) + wait.duration_s}
            if wait.kind in CONTENTION_KINDS:
                contention_s += wait.duration_s
            else:
                idle_s += wait.duration_s
        spin_s = wait_s.get(Kind.SPIN, 0.0)
        cpu_s = task.cpu_s if task else before.thread.cpu_s if before else 0.0
        now = raw.now if raw else 0
        contended = idle = asleep = 0.0
        if before:
            interval_s = self._clock.seconds(now - before.now)
            waited_s, spun_s = contention_s - before.contention_s, spin_s - before.spin_s
            contended = rates.share(waited_s, interval_s)
            idle = rates.share(idle_s - before.idle_s, interval_s)
            asleep = rates.share(waited_s - spun_s, interval_s) if spun_s else contended
        time = self._times.of(key, task, asleep, idle, counts and raw is not None)
        uses, signals = _done(counted, context)
        thread = Thread(
            tid=tid,
            name=self._name(key, raw, task),
            alive=task is not None,
            state=classifier.state(wait.kind if wait else None, task.state if task else ""),
            waiting_for=wait,
            holds=self._holds(raw),
            wait_s=wait_s,
            cpu_s=cpu_s,
            acquisitions=counted.acquisitions,
            contended=counted.contended,
            wait_share=contended,
            idle_share=idle,
            cpu_share=time.cpu if time else 0.0,
            uses=uses,
            signals=signals,
            time=time,
        )
        totals[key] = _Totals(counted, task, thread, now, contention_s, idle_s, spin_s)
        return thread

    def _still_waits(
        self,
        key: ThreadKey,
        before: _Totals,
        raw: RawThread | None,
        task: KernelThread,
        context: ScanContext,
        counts: bool,
    ) -> Thread | None:
        """The thread if it has slept on since the look before: then little but times differs. Most
        threads of most programs do, and to make this of what was known takes half as long."""
        last, counted = before.thread, before.counted
        was = last.waiting_for
        if raw is None or raw is not counted.raw or was is None or raw.wait is None:
            return None
        duration_s = self._clock.seconds(raw.now - raw.wait.since)
        kind, contends = was.kind, was.kind in CONTENTION_KINDS
        known = self._known_holders(raw, raw.wait, context) if contends else ()
        awaits = context.awaited(raw.wait) if kind is Kind.JOIN else 0
        wait = replace(was, duration_s=duration_s, holders=known, awaits=awaits)
        share = rates.share(duration_s - was.duration_s, self._clock.seconds(raw.now - before.now))
        contended, idle = (share, 0.0) if contends else (0.0, share)
        before.now = raw.now
        before.contention_s = counted.contention_s + (duration_s if contends else 0.0)
        before.idle_s = counted.idle_s + (0.0 if contends else duration_s)
        time = self._times.of(key, task, contended, idle, counts)
        cpu_share = time.cpu if time else 0.0
        uses, signals = _done(counted, context)
        wait_s = {**counted.wait_s, kind: counted.wait_s.get(kind, 0.0) + duration_s}
        holds = self._holds(raw) if raw.held else ()
        return replace(
            last,
            waiting_for=wait,
            holds=holds,
            wait_s=wait_s,
            wait_share=contended,
            idle_share=idle,
            cpu_share=cpu_share,
            uses=uses,
            signals=signals,
            pid=0,
            time=time,
            switches=None,
            counters=None,
            now=None,
        )

    def waiting_threads(
        self, raws: Mapping[int, RawThread], tasks: Mapping[int, KernelThread]
    ) -> tuple[Thread, ...]:
        """Return all threads with their waits and what they hold and use, and nothing else."""
        context = ScanContext(raws, locks_now(raws.values(), tasks), tasks)
        found = []
        for tid in raws.keys() | tasks.keys():
            raw = raws.get(tid)
            wait = self._wait(raw, context) if raw else None
            uses, signals = _done(self._counted(raw), context)
            found.append(
                Thread(
                    tid=tid,
                    name="",
                    alive=tid in tasks,
                    state=ThreadState.OTHER,
                    waiting_for=wait,
                    holds=self._holds(raw),
                    wait_s={},
                    cpu_s=0.0,
                    acquisitions=0,
                    contended=0,
                    uses=uses,
                    signals=signals,
                )
            )
        return tuple(found)

    def _counted(self, raw: RawThread | None) -> _Counted:
        if raw is None:
            return _NOTHING
        ticks = raw.wait_ticks
        waited = zip(compress(BY_NUMBER, ticks), filter(None, ticks), strict=True)
        wait_s = {kind: self._clock.seconds(total) for kind, total in waited}
        uses = raw.uses()
        return _Counted(
            raw,
            wait_s,
            *rates.split(wait_s),
            sum(_of_contention(raw.acquisitions)),
            sum(_of_contention(raw.contended)),
            uses,
            has_signalled(uses),
        )

    def _name(self, key: ThreadKey, raw: RawThread | None, task: KernelThread | None) -> str:
        if task is not None:
            name = task.name
        else:
            own = raw.block.name.partition(b"\0")[0] if raw else b""
            name = clean(own) if own else self._names.get(key, "")
        self._names[key] = name
        return name

    def _wait(self, raw: RawThread, context: ScanContext) -> Wait | None:
        wait = raw.wait
        kind = kind_of(wait.key) if wait else None
        if wait is None or kind is None:
            return None
        return Wait(
            lock=wait.lock,
            kind=kind,
            duration_s=self._clock.seconds(raw.now - wait.since),
            holders=self._known_holders(raw, wait, context) if kind in CONTENTION_KINDS else (),
            stack=wait.stack,
            site=wait.site,
            seq=wait.seq,
            timed=bool(wait.flags & _WAIT_TIMED),
            shared=bool(wait.flags & _WAIT_SHARED),
            holder_seen=wait.holder,
            pshared=bool(wait.flags & _WAIT_PSHARED),
            awaits=context.awaited(wait),
            parties=wait.parties if kind is Kind.BARRIER else 0,
            idle=kind not in CONTENTION_KINDS,
        )

    def _known_holders(
        self, raw: RawThread, wait: WaitBlock, context: ScanContext
    ) -> tuple[int, ...]:
        if not wait.lock:  # it stands for many
            return ()
        known = context.holders(wait.lock)
        if known:
            return known
        published = context.locks.get(wait.lock, NOBODY).published
        return tuple(presumed(published, raw.now - wait.since, self._clock))

    def _holds(self, raw: RawThread | None) -> tuple[Held, ...]:
        if raw is None or not raw.held:
            return ()
        return tuple([self._held(raw, entry) for entry in raw.held])

    def _held(self, raw: RawThread, entry: HeldEntry) -> Held:
        return Held(
            lock=entry.lock,
            site=entry.site,
            duration_s=self._clock.seconds(raw.now - entry.since) if entry.since else None,
            depth=entry.depth,
            shared=bool(entry.flags & _HELD_SHARED),
        )


def _done(counted: _Counted, context: ScanContext) -> tuple[tuple[Use, ...] | None, bool]:
    """See Thread.uses and Thread.signals: of no use where nobody waits for what nobody owns."""
    if counted.raw is None or not context.of_nobody:
        return (), False
    return context.uses(counted.raw, counted.uses) if counted.uses else (), counted.signals
