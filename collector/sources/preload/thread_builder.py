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
    Kind,
    LockUse,
    PackedHistogram,
    Thread,
    ThreadState,
    Wait,
)
from locktop.collector.native import lib
from locktop.collector.sanitize import clean
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.kinds import BY_NUMBER, KIND_SHIFT, KINDS
from locktop.collector.shm.layout import HeldRecord, WaitBlock
from locktop.collector.shm.reader import RawThread
from locktop.collector.sources.preload.lock_state import (
    NO_STATE,
    LockState,
    ScanContext,
    has_signalled,
    lock_states,
    presumed_holders,
)
from locktop.collector.sources.probes.time_accounting import TimeAccounting

# The class looks a member up for longer than a dict takes.
_SPIN = Kind.SPIN
_BARRIER = Kind.BARRIER
_WAIT_TIMED: int = lib.LT_WAIT_TIMED
_WAIT_SHARED: int = lib.LT_WAIT_SHARED
_WAIT_PSHARED: int = lib.LT_WAIT_PSHARED
_HELD_SHARED: int = lib.LT_HELD_SHARED

ThreadKey = tuple[int, int]  # tid, birth


class _LastScan(Struct, gc=False):
    """The values that the next scan compares with."""

    raw: RawThread | None  # stays the same object while the thread sleeps
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

    def build(
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
        build, raw_of, task_of = self._thread, raws.get, tasks.get
        threads = [
            build(tid, raw_of(tid), task_of(tid), context, scanned, counts)
            for tid in sorted({**raws, **tasks})
        ]
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
        wait = self._wait(raw, context) if raw and raw.wait and task else None
        wait_s, contention_s, idle_s = self._wait_seconds(raw, wait)
        spin_s = wait_s.get(_SPIN, 0.0)
        now = raw.now if raw else 0
        contended = idle = asleep = 0.0
        if before:
            interval_s = self._clock.seconds(now - before.now)
            waited_s, spun_s = contention_s - before.contention_s, spin_s - before.spin_s
            contended = rates.share(waited_s, interval_s)
            if idle_s > before.idle_s:
                idle = rates.share(idle_s - before.idle_s, interval_s)
            asleep = rates.share(waited_s - spun_s, interval_s) if spun_s else contended
        time = self._times.time_split(key, task, asleep, idle, counts and raw is not None)
        # A call with 15 names or more and two positions takes five times as long, so two fields
        # follow.
        thread = Thread(
            tid,
            name=task.name if task else _name_of_ended(raw, before),
            alive=task is not None,
            state=classifier.state(wait.kind if wait else None, task.state if task else ""),
            waiting_for=wait,
            holds=self._holds(raw) if raw and raw.held else (),
            wait_s=wait_s,
            cpu_s=task.cpu_s if task else before.thread.cpu_s if before else 0.0,
            acquisitions=raw.acquisitions if raw else 0,
            contended=raw.contended if raw else 0,
            wait_share=contended,
            idle_share=idle,
            cpu_share=time.cpu if time else 0.0,
            time=time,
            wait_histogram=self._histogram(raw) if raw and raw.wait_lengths else None,
        )
        if context.unowned:
            uses, signals = _uses(raw, context)
            thread = replace(thread, uses=uses, signals=signals)
        scanned[key] = _LastScan(
            raw=raw, task=task, thread=thread, now=now, contention_s=contention_s,
            idle_s=idle_s, spin_s=spin_s,
        )  # fmt: skip
        return thread

    def _histogram(self, raw: RawThread) -> PackedHistogram:
        return PackedHistogram(raw.wait_lengths, hz=self._clock.hz, left_out=raw.waits_left_out)

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
        last = before.thread
        was = last.waiting_for
        if raw is None or raw is not before.raw or was is None or raw.wait is None:
            return None
        duration_s = self._clock.seconds(raw.now - raw.wait.since)
        kind, contends = was.kind, was.kind in CONTENTION_KINDS
        holders = self._known_holders(raw, raw.wait, context) if contends else ()
        awaits = context.awaited_thread(raw.wait) if kind is Kind.JOIN else 0
        wait = replace(was, duration_s=duration_s, holders=holders, awaits=awaits)
        share = rates.share(duration_s - was.duration_s, self._clock.seconds(raw.now - before.now))
        contended, idle = (share, 0.0) if contends else (0.0, share)
        before.now = raw.now
        wait_s, before.contention_s, before.idle_s = self._wait_seconds(raw, wait)
        time = self._times.time_split(key, task, contended, idle, counts)
        cpu_share = time.cpu if time else 0.0
        uses, signals = _uses(raw, context)
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
        threads = []
        for tid in raws.keys() | tasks.keys():
            raw = raws.get(tid)
            wait = self._wait(raw, context) if raw else None
            uses, signals = _uses(raw, context)
            threads.append(
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
        return tuple(threads)

    def _wait_seconds(
        self, raw: RawThread | None, wait: Wait | None
    ) -> tuple[dict[Kind, float], float, float]:
        """Return seconds of waits by kind, of contention and of idle waits, with the current
        wait."""
        hz, ticks_by_kind = self._clock.hz, raw.wait_ticks if raw else ()
        wait_s: dict[Kind, float] = {}
        for number, ticks in ticks_by_kind:  # most threads have one kind: no comprehension
            wait_s[BY_NUMBER[number]] = ticks / hz
        if wait is not None:
            kind = wait.kind
            wait_s[kind] = wait_s.get(kind, 0.0) + wait.duration_s
        contention_s, idle_s = rates.split(wait_s)
        return wait_s, contention_s, idle_s

    def _wait(self, raw: RawThread, context: ScanContext) -> Wait | None:
        wait = raw.wait
        kind = KINDS.get(wait.key >> KIND_SHIFT) if wait is not None else None
        if wait is None or kind is None:
            return None
        contends, flags, ticks = kind in CONTENTION_KINDS, wait.flags, raw.now - wait.since
        return Wait(
            lock=wait.lock,
            kind=kind,
            duration_s=ticks / self._clock.hz if ticks > 0 else 0.0,
            holders=self._known_holders(raw, wait, context) if contends else (),
            stack=wait.stack,
            site=wait.site,
            seq=wait.seq,
            timed=flags & _WAIT_TIMED != 0,
            shared=flags & _WAIT_SHARED != 0,
            holder_seen=wait.holder,
            pshared=flags & _WAIT_PSHARED != 0,
            awaits=0 if contends else context.awaited_thread(wait),
            parties=wait.parties if kind is _BARRIER else 0,
            idle=not contends,
            is_lower_bound=raw.is_wait_older,
        )

    def _known_holders(
        self, raw: RawThread, wait: WaitBlock, context: ScanContext
    ) -> tuple[int, ...]:
        if not wait.lock:  # id 0 stands for many locks
            return ()
        holders = context.holders(wait.lock)
        if holders:
            return holders
        published = context.locks.get(wait.lock, NO_STATE).published
        return tuple(presumed_holders(published, raw.now - wait.since, self._clock))

    def _holds(self, raw: RawThread | None) -> tuple[Held, ...]:
        if raw is None or not raw.held:
            return ()
        return tuple([self._held_lock(raw, entry) for entry in raw.held])

    def _held_lock(self, raw: RawThread, entry: HeldRecord) -> Held:
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


def _uses(raw: RawThread | None, context: ScanContext) -> tuple[tuple[LockUse, ...] | None, bool]:
    """Return Thread.uses and Thread.signals; both are empty if no thread waits for an unowned
    object.
    """
    if raw is None or not context.unowned or not raw.use_count:
        return (), False
    uses = raw.uses()
    return context.uses(raw, uses), has_signalled(uses)
