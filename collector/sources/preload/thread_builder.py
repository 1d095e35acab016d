"""Builds the model's threads from the ticks and ids of one reading."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.analysis import rates
from locktop.collector.analysis.idle import classifier
from locktop.collector.linux.threads import KernelThread
from locktop.collector.model import (
    CONTENTION_KINDS,
    Held,
    Histogram,
    Kind,
    LockUse,
    Thread,
    ThreadState,
    Wait,
)
from locktop.collector.native import lib
from locktop.collector.sanitize import clean
from locktop.collector.shm import layout
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.kinds import BY_NUMBER, kind_of
from locktop.collector.shm.layout import HeldRecord, WaitBlock
from locktop.collector.shm.reader import RawThread
from locktop.collector.sources.preload.lock_state import (
    NO_STATE,
    LockState,
    ScanContext,
    has_signalled,
    lock_states,
    presumed,
)
from locktop.collector.sources.probes.time_accounting import TimeAccounting

_SPIN = Kind.SPIN  # the class looks a member up for longer than a dict takes
_WAIT_TIMED: int = lib.LT_WAIT_TIMED
_WAIT_SHARED: int = lib.LT_WAIT_SHARED
_WAIT_PSHARED: int = lib.LT_WAIT_PSHARED
_HELD_SHARED: int = lib.LT_HELD_SHARED

ThreadKey = tuple[int, int]  # tid, birth


class _ThreadCounters(Struct, gc=False):
    """The counters of a thread in the model's units.

    They are computed once for each RawThread, which stays the same object while the thread sleeps.
    """

    raw: RawThread | None
    wait_s: Mapping[Kind, float]  # of finished waits
    contention_s: float
    idle_s: float
    acquisitions: int
    contended: int
    uses: list[layout.UseRecord]
    signals: bool  # see Thread.signals
    waits: Histogram | None


_NOTHING = _ThreadCounters(
    raw=None,
    wait_s={},
    contention_s=0.0,
    idle_s=0.0,
    acquisitions=0,
    contended=0,
    uses=[],
    signals=False,
    waits=None,
)


class _LastScan(Struct, gc=False):
    """The values that the next scan compares with."""

    counted: _ThreadCounters
    task: KernelThread | None
    thread: Thread
    now: int  # ticks
    contention_s: float
    idle_s: float
    spin_s: float  # part of contention_s, by waiters that never sleep


class ThreadBuilder:
    """Builds the model's threads in each scan."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_scan: dict[ThreadKey, _LastScan] = {}
        self._times = TimeAccounting()

    def of(
        self,
        raws: Mapping[int, RawThread],
        now: Mapping[int, LockState],
        tasks: Mapping[int, KernelThread],
        tasks_at_s: float,
        counts: bool,
    ) -> tuple[Thread, ...]:
        """Return the threads in order of tid.

        Args:
            raws: the threads of the shared memory, by tid.
            now: the state of each lock, by id.
            tasks: the kernel's view of the threads, by tid.
            tasks_at_s: when the tasks were read, on the monotonic clock.
            counts: whether the library counts waits; a dormant library does not.
        """
        scanned: dict[ThreadKey, _LastScan] = {}
        context = ScanContext(raws, now, tasks)
        self._times.begin(tasks_at_s)
        threads = []
        for tid in sorted({**raws, **tasks}):
            raw, task = raws.get(tid), tasks.get(tid)
            threads.append(self._thread(tid, raw, task, context, scanned, counts))
        self._last_scan = scanned
        return tuple(threads)

    def _thread(
        self,
        tid: int,
        raw: RawThread | None,
        task: KernelThread | None,
        context: ScanContext,
        scanned: dict[ThreadKey, _LastScan],
        counts: bool,
    ) -> Thread:
        key = (tid, raw.block.birth if raw else 0)
        before = self._last_scan.get(key)
        if before is not None and task is not None and task is before.task:
            again = self._still_waits(key, before, raw, task, context, counts)
            if again is not None:
                before.thread, scanned[key] = again, before
                return again
        counted = before.counted if before else _NOTHING
        if counted.raw is not raw:
            counted = self._counted(raw)
        wait = self._wait(raw, context) if raw and task else None
        wait_s, contention_s, idle_s = _with_current(counted, wait)
        spin_s = wait_s.get(_SPIN, 0.0)
        now = raw.now if raw else 0
        contended = idle = asleep = 0.0
        if before:
            interval_s = self._clock.seconds(now - before.now)
            waited_s, spun_s = contention_s - before.contention_s, spin_s - before.spin_s
            contended = rates.share(waited_s, interval_s)
            idle = rates.share(idle_s - before.idle_s, interval_s)
            asleep = rates.share(waited_s - spun_s, interval_s) if spun_s else contended
        time = self._times.of(key, task, asleep, idle, counts and raw is not None)
        # A call with 15 names or more and two positions takes five times as long, so two fields
        # follow.
        thread = Thread(
            tid,
            task.name if task else _name_of_ended(raw, before),
            alive=task is not None,
            state=classifier.state(wait.kind if wait else None, task.state if task else ""),
            waiting_for=wait,
            holds=self._holds(raw) if raw and raw.held else (),
            wait_s=wait_s,
            cpu_s=task.cpu_s if task else before.thread.cpu_s if before else 0.0,
            acquisitions=counted.acquisitions,
            contended=counted.contended,
            wait_share=contended,
            idle_share=idle,
            cpu_share=time.cpu if time else 0.0,
            time=time,
            wait_histogram=counted.waits,
        )
        if context.unowned:
            uses, signals = _uses(counted, context)
            thread = replace(thread, uses=uses, signals=signals)
        scanned[key] = _LastScan(
            counted=counted, task=task, thread=thread, now=now, contention_s=contention_s,
            idle_s=idle_s, spin_s=spin_s,
        )  # fmt: skip
        return thread

    def _still_waits(
        self,
        key: ThreadKey,
        before: _LastScan,
        raw: RawThread | None,
        task: KernelThread,
        context: ScanContext,
        counts: bool,
    ) -> Thread | None:
        """Return the thread if it has slept since the last scan: then little but times differs.

        Most threads of most programs do so. This way takes half the time.
        """
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
        uses, signals = _uses(counted, context)
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
        """Return all threads with nothing but their waits, holds and uses."""
        context = ScanContext(raws, lock_states(raws.values(), tasks), tasks)
        found = []
        for tid in raws.keys() | tasks.keys():
            raw = raws.get(tid)
            wait = self._wait(raw, context) if raw else None
            uses, signals = _uses(self._counted(raw), context)
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
                    acquisitions=None,
                    contended=None,
                    uses=uses,
                    signals=signals,
                )
            )
        return tuple(found)

    def _counted(self, raw: RawThread | None) -> _ThreadCounters:
        if raw is None:
            return _NOTHING
        hz = self._clock.hz
        wait_s = {BY_NUMBER[kind]: ticks / hz for kind, ticks in raw.wait_ticks.items()}
        uses = raw.uses() if raw.use_count else []
        contention_s, idle_s = rates.split(wait_s)
        return _ThreadCounters(
            raw=raw,
            wait_s=wait_s,
            contention_s=contention_s,
            idle_s=idle_s,
            acquisitions=raw.acquisitions,
            contended=raw.contended,
            uses=uses,
            signals=bool(uses) and has_signalled(uses),
            waits=self._histogram(raw) if raw.wait_counts else None,
        )

    def _histogram(self, raw: RawThread) -> Histogram:
        return Histogram(
            buckets=raw.wait_buckets,
            counts=raw.wait_counts,
            hz=self._clock.hz,
            left_out=raw.waits_left_out,
        )

    def _wait(self, raw: RawThread, context: ScanContext) -> Wait | None:
        wait = raw.wait
        kind = kind_of(wait.key) if wait is not None else None
        if wait is None or kind is None:
            return None
        contends, flags = kind in CONTENTION_KINDS, wait.flags
        return Wait(
            lock=wait.lock,
            kind=kind,
            duration_s=self._clock.seconds(raw.now - wait.since),
            holders=self._known_holders(raw, wait, context) if contends else (),
            stack=wait.stack,
            site=wait.site,
            seq=wait.seq,
            timed=flags & _WAIT_TIMED != 0,
            shared=flags & _WAIT_SHARED != 0,
            holder_seen=wait.holder,
            pshared=flags & _WAIT_PSHARED != 0,
            awaits=0 if contends else context.awaited(wait),
            parties=wait.parties if kind is Kind.BARRIER else 0,
            idle=not contends,
            is_lower_bound=raw.is_wait_older,
        )

    def _known_holders(
        self, raw: RawThread, wait: WaitBlock, context: ScanContext
    ) -> tuple[int, ...]:
        if not wait.lock:  # id 0 stands for many locks
            return ()
        known = context.holders(wait.lock)
        if known:
            return known
        published = context.locks.get(wait.lock, NO_STATE).published
        return tuple(presumed(published, raw.now - wait.since, self._clock))

    def _holds(self, raw: RawThread | None) -> tuple[Held, ...]:
        if raw is None or not raw.held:
            return ()
        return tuple([self._held(raw, entry) for entry in raw.held])

    def _held(self, raw: RawThread, entry: HeldRecord) -> Held:
        return Held(
            lock=entry.lock,
            site=entry.site,
            duration_s=self._clock.seconds(raw.now - entry.since) if entry.since else None,
            depth=entry.depth,
            shared=bool(entry.flags & _HELD_SHARED),
        )


def _name_of_ended(raw: RawThread | None, before: _LastScan | None) -> str:
    own = raw.block.name.partition(b"\0")[0] if raw is not None else b""
    return clean(own) if own else before.thread.name if before is not None else ""


def _with_current(
    counted: _ThreadCounters, wait: Wait | None
) -> tuple[Mapping[Kind, float], float, float]:
    """Return seconds of waits by kind, of contention and of idle waits, with the current wait."""
    wait_s, contention_s, idle_s = counted.wait_s, counted.contention_s, counted.idle_s
    if wait is not None:
        kind, duration_s = wait.kind, wait.duration_s
        wait_s = {**wait_s, kind: wait_s.get(kind, 0.0) + duration_s}
        if kind in CONTENTION_KINDS:
            contention_s += duration_s
        else:
            idle_s += duration_s
    return wait_s, contention_s, idle_s


def _uses(
    counted: _ThreadCounters, context: ScanContext
) -> tuple[tuple[LockUse, ...] | None, bool]:
    """Return Thread.uses and Thread.signals; both are empty if no thread waits for an unowned
    object.
    """
    if counted.raw is None or not context.unowned:
        return (), False
    return context.uses(counted.raw, counted.uses) if counted.uses else (), counted.signals
