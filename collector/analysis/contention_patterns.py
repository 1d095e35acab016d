"""Contention patterns: known shapes of contention, each found by its figures.

A pattern is reported only where its figures are clearly over their thresholds. The rates are those
of the last interval. The first scan has no interval: there the rates are those of the whole time.
The docstring of each finder states what the pattern needs. docs/patterns.md explains the patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from locktop.collector.analysis import (
    cpu_starvation,
    oversubscription,
    overtaken_writers,
    unsignalled_conditions,
)
from locktop.collector.analysis.contention_findings import (
    Convoy,
    FalseIdle,
    Finding,
    HighRate,
    LongHold,
    Serialised,
    StarvedWriter,
    ThunderingHerd,
)
from locktop.collector.analysis.sampled_queues import QueueSamples
from locktop.collector.model import (
    CONTENTION_KINDS,
    SIGNALLED_KINDS,
    ActivityState,
    Contents,
    Held,
    Kind,
    Lock,
    Thread,
    ThreadActivity,
    ThreadState,
    unheld_s,
)
from locktop.collector.model.kinds import EXCLUSIVE_KINDS, TURNS_KINDS

_MIN_PERIOD_S = 0.1  # the rates of a shorter interval say little

_CONVOY_WAITERS = 3
_CONVOY_CONTENDED = 0.5  # share of the acquisitions
_CONVOY_UNHELD = 0.4  # share of the wait
_CONVOY_MAX_HOLD_S = 1e-4  # mean
_CONVOY_WAIT = 0.5  # seconds waited per second
_CONVOY_RATE = 10.0  # acquisitions per second

_SERIALISED_HELD = 0.9  # share of the time
_SERIALISED_WAITERS = 3
_SERIALISED_THREADS = 0.5  # share of the threads that are not idle
_SERIALISED_CONTENDED = 0.5  # share of the acquisitions
_SERIALISED_RATE = 2.0  # acquisitions per second: one single long hold is no pattern

_HERD_WAITERS = 4
_HERD_EACH = 4.0  # threads woken by one signal
_HERD_RATE = 100.0  # wake-ups per second
_HERD_MIN_WAKEUPS = 500.0  # in all: the kernel counts CPU time in ticks of 10 ms
_HERD_MAX_CPU_S = 1e-4  # CPU time of a woken thread until it sleeps again

_STARVED_S = 1.0
_STARVED_BEFORE_S = 0.1  # a scan reads the threads one after the other
_LONG_HOLD_S = 0.1
_LONG_HOLD_MAX_ON_CPU = 0.5  # share of the hold
_FALSE_IDLE_S = 0.1
_FALSE_IDLE_SIGNALS = 0.9  # share of the signals that living threads sent
_HIGH_RATE = 1e6  # acquisitions per second
_HIGH_RATE_CONTENDED = 0.001  # share of the acquisitions

# The class looks a member up for longer than a dict takes.
_IDLE = ThreadState.IDLE


def find(
    snapshot: Contents,
    may_have_slept: overtaken_writers.Slept = lambda tid, duration_s: False,
    queues: QueueSamples | None = None,
) -> tuple[Finding, ...]:
    """Return the patterns of a snapshot, in the order of ``PatternName``.

    Args:
        snapshot: A snapshot or draft with classified waits (``Wait.idle``).
        may_have_slept: See overtaken_writers.
        queues: The samples of a process without the library.

    Returns:
        No pattern if the process has ended, if its library is dormant, or if the scan came less
        than 100 ms after the scan before.
    """
    index = _ContentionIndex(snapshot)
    if snapshot.ended or snapshot.level == "dormant" or index.period_s < _MIN_PERIOD_S:
        return ()
    if snapshot.is_sampled:  # nobody counts what the other finders go by
        return (
            *overtaken_writers.find(index.contended, may_have_slept),
            *_find_long_holds(index),
            *oversubscription.find(snapshot, index.contended),
            *(queues.find(snapshot) if queues is not None else ()),
        )
    return tuple(finding for finder in _FINDERS for finding in finder(index))


class _Rates(NamedTuple):
    """The rates of a lock as in LockRates, all of them measured."""

    acquisitions: float
    contended: float
    wait: float
    hold: float
    signals: float
    unheld: float


class _ContentionIndex:
    """One snapshot, with its waiting threads by lock; without the threads of a deadlock."""

    def __init__(self, snapshot: Contents) -> None:
        self.snapshot = snapshot
        deadlocked = {edge.tid for deadlock in snapshot.deadlocks for edge in deadlock.cycle}
        deadlocked.update(tid for deadlock in snapshot.deadlocks for tid in deadlock.stuck)
        self._contended: dict[int, list[Thread]] = {}
        self._idle: dict[int, list[Thread]] = {}
        contended, idle = self._contended, self._idle
        self._held: dict[int, dict[int, Held]] = {}  # by tid and lock
        for thread in snapshot.threads:
            wait = thread.waiting_for
            if wait is not None and wait.lock and thread.alive and thread.tid not in deadlocked:
                (idle if wait.idle else contended).setdefault(wait.lock, []).append(thread)

    @cached_property
    def threads(self) -> dict[int, Thread]:
        return {thread.tid: thread for thread in self.snapshot.threads}

    @cached_property
    def busy(self) -> set[int]:
        """The living threads that are not idle, by tid."""
        return {
            thread.tid
            for thread in self.snapshot.threads
            if thread.state is not _IDLE and thread.alive
        }

    @cached_property
    def locks(self) -> dict[int, Lock]:
        return {lock.id: lock for lock in self.snapshot.locks}

    @property
    def contended(self) -> Iterator[tuple[Lock, list[Thread]]]:
        """The locks with contended waits, and their waiters. A lock with foreign releases is not
        among them: its holder is not certain."""
        return (
            (self.locks[lock], waiters)
            for lock, waiters in self._contended.items()
            if lock in self.locks and not self.locks[lock].foreign_releases
        )

    @property
    def idle(self) -> Iterator[tuple[Lock, list[Thread]]]:
        """The locks with idle waits, and their waiters."""
        return (
            (self.locks[id_], waiters) for id_, waiters in self._idle.items() if id_ in self.locks
        )

    def held(self, tid: int, lock: int) -> Held | None:
        """Return the hold of a lock by a thread, None if the thread does not hold the lock."""
        if tid not in self._held:
            thread = self.threads.get(tid)
            holds = thread.holds if thread is not None else ()
            self._held[tid] = {held.lock: held for held in reversed(holds)}
        return self._held[tid].get(lock)

    @property
    def period_s(self) -> float:
        """The time that the rates refer to."""
        return self.snapshot.interval_s or self.snapshot.duration_s

    def rates(self, lock: Lock) -> _Rates | None:
        """Return the rates of a lock over ``period_s``, None if one of them was not measured."""
        if self.snapshot.interval_s > 0:
            sums = lock.rates
            figures = (
                sums.acquisitions, sums.contended, sums.wait, sums.hold, sums.signals, sums.unheld,
            )  # fmt: skip
            return _rates(figures, 1.0)
        figures = (
            lock.acquisitions, lock.contended, lock.wait_s, lock.hold_s, lock.signals,
            unheld_s(lock.blame),
        )  # fmt: skip
        return _rates(figures, 1.0 / self.period_s)

    def cpu(self, thread: Thread) -> float:
        """Return the seconds that a thread was on a CPU, per second of ``period_s``."""
        if self.snapshot.interval_s > 0:
            return thread.cpu_share
        return thread.cpu_s / self.period_s


def _rates(figures: Sequence[float | None], per_s: float) -> _Rates | None:
    """``figures``: in the order of ``_Rates``."""
    measured = [figure * per_s for figure in figures if figure is not None]
    return _Rates(*measured) if len(measured) == len(figures) else None


def _find_convoys(index: _ContentionIndex) -> Iterator[Convoy]:
    """At least 3 threads wait, and half of the acquisitions had to wait. The mean hold takes at
    most 100 us. The wait is at least 0.5 s per second, and during 40 % of the wait no thread held
    the lock. In that time its holder had released the lock, and the next thread had not woken up.

    There is no such finding if the holders were not known at all times.
    """
    if index.snapshot.level == "counting" or not index.snapshot.complete:
        return
    for lock, waiters in index.contended:
        if len(waiters) < _CONVOY_WAITERS or not lock.hold_timed:
            continue
        rates = index.rates(lock)
        if (
            rates is None
            or rates.acquisitions < _CONVOY_RATE
            or rates.wait < _CONVOY_WAIT
            or any(thread.waiting_for.pshared for thread in waiters if thread.waiting_for)
        ):
            continue
        hold_s = rates.hold / rates.acquisitions
        contended, unheld = rates.contended / rates.acquisitions, rates.unheld / rates.wait
        if (
            contended >= _CONVOY_CONTENDED
            and unheld >= _CONVOY_UNHELD
            and hold_s <= _CONVOY_MAX_HOLD_S
        ):
            yield Convoy(
                lock=lock.id,
                tids=_tids(waiters),
                waiters=len(waiters),
                acquisitions_per_s=rates.acquisitions,
                contended=contended,
                unheld=unheld,
                hold_s=hold_s,
            )


def _find_serialised(index: _ContentionIndex) -> Iterator[Serialised]:
    """A mutex or spin lock is held 90 % of the time and taken at least twice a second. Half of the
    acquisitions had to wait, and at least 3 threads wait. These threads and the holder are at least
    half of the threads that are not idle."""
    for lock, waiters in index.contended:
        if lock.kind not in EXCLUSIVE_KINDS or len(waiters) < _SERIALISED_WAITERS:
            continue
        rates = index.rates(lock)
        if (
            rates is None
            or rates.hold < _SERIALISED_HELD
            or rates.acquisitions < _SERIALISED_RATE
            or rates.contended < rates.acquisitions * _SERIALISED_CONTENDED
        ):
            continue
        involved = {*lock.holders, *[thread.tid for thread in waiters]}
        active = len(index.busy | involved)
        if len(involved) >= active * _SERIALISED_THREADS:
            yield Serialised(
                lock=lock.id,
                tids=_tids(waiters),
                held=rates.hold,
                involved=len(involved),
                active=active,
                contended=rates.contended / rates.acquisitions,
                acquisitions_per_s=rates.acquisitions,
            )


def _find_herds(index: _ContentionIndex) -> Iterator[ThunderingHerd]:
    """At least 4 threads wait for a condition variable without a time limit. At least 100 waits a
    second return (and 500 in all), 4 for each signal or broadcast. Each woken thread uses at most
    100 us of a CPU, which is too little to have found work."""
    for lock, waiters in index.idle:
        if lock.kind is not Kind.COND or len(waiters) < _HERD_WAITERS:
            continue
        rates = index.rates(lock)
        if (
            rates is None
            or rates.signals <= 0
            or rates.acquisitions < _HERD_RATE
            or rates.acquisitions * index.period_s < _HERD_MIN_WAKEUPS
            or rates.acquisitions < rates.signals * _HERD_EACH
            or any(
                thread.waiting_for.timed or thread.waiting_for.pshared
                for thread in waiters
                if thread.waiting_for
            )
        ):
            continue
        cpu_s = sum(index.cpu(thread) for thread in waiters) / rates.acquisitions
        if cpu_s < _HERD_MAX_CPU_S:
            yield ThunderingHerd(
                lock=lock.id,
                tids=_tids(waiters),
                waiters=len(waiters),
                wakeups_per_s=rates.acquisitions,
                signals_per_s=rates.signals,
                max_cpu_s=_HERD_MAX_CPU_S,
            )


def _find_starved_writers(index: _ContentionIndex) -> Iterator[StarvedWriter]:
    """A writer has waited for 1 s for a reader-writer lock that does not prefer writers. Each
    present reader took the lock at least 100 ms after the writer began to wait."""
    for lock, waiters in index.contended:
        if lock.kind not in TURNS_KINDS or lock.writers_first:
            continue
        read_s = _longest_read_s(index, lock)
        if read_s is None:
            continue
        min_wait_s = max(_STARVED_S, read_s + _STARVED_BEFORE_S)
        starved = [thread for thread in waiters if _wants_to_write(thread, min_wait_s)]
        if starved:
            yield StarvedWriter(
                lock=lock.id,
                tids=_tids(starved),
                writers=len(starved),
                longest_wait_s=_longest_s(starved),
                readers=len(lock.holders),
                longest_read_s=read_s,
            )


def _wants_to_write(thread: Thread, min_wait_s: float) -> bool:
    wait = thread.waiting_for
    return wait is not None and not wait.shared and wait.duration_s >= min_wait_s


def _longest_read_s(index: _ContentionIndex, lock: Lock) -> float | None:
    """Return how long the first of the present readers has held the lock. None if that is not known
    of each reader, or if there is no reader."""
    longest_s: float | None = None
    for tid in lock.holders:
        held = index.held(tid, lock.id)
        if held is None or not held.shared or held.duration_s is None:
            return None
        longest_s = max(longest_s or 0.0, held.duration_s)
    return longest_s


def _find_long_holds(index: _ContentionIndex) -> Iterator[LongHold]:
    """One thread has held a lock for 100 ms while other threads wait for the lock. The holder waits
    for nothing that is known, and the kernel shows the holder asleep. The holder was on a CPU
    during at most half of the hold."""
    for lock, waiters in index.contended:
        holder = index.threads.get(lock.holders[0]) if len(lock.holders) == 1 else None
        activity = lock.holder_activity
        if holder is None or activity is None or not _sleeps(index.snapshot, holder, activity):
            continue
        held_s, is_lower_bound = _held_s(index, lock, holder)
        on_cpu_s = holder.cpu_share * index.snapshot.interval_s
        if held_s >= _LONG_HOLD_S and on_cpu_s <= held_s * _LONG_HOLD_MAX_ON_CPU:
            yield LongHold(
                lock=lock.id,
                tids=(holder.tid,),
                held_s=held_s,
                is_lower_bound=is_lower_bound,
                holder=holder.tid,
                holder_name=holder.name,
                call=activity.what,
                waiters=len(waiters),
                longest_wait_s=_longest_s(waiters),
            )


def _sleeps(snapshot: Contents, thread: Thread, activity: ThreadActivity) -> bool:
    """Return whether a holder sleeps in a system call that is not a wait for a lock."""
    return (
        activity.tid == thread.tid
        and activity.doing is ActivityState.BLOCKED
        and not activity.call.startswith("futex")
        and thread.tid not in snapshot.unobserved_waiters
    )


def _held_s(index: _ContentionIndex, lock: Lock, holder: Thread) -> tuple[float, bool]:
    """Return how long a thread has held a lock, and whether that is a lower bound. A lock that no
    thread took in the whole interval was held during all of the interval."""
    held = index.held(holder.tid, lock.id)
    if held is not None and held.duration_s is not None:
        return held.duration_s, held.is_lower_bound
    return index.snapshot.interval_s if lock.rates.acquisitions == 0 else 0.0, True


def _find_false_idle(index: _ContentionIndex) -> Iterator[FalseIdle]:
    """Threads have waited for 100 ms for a condition variable or a semaphore. Each living thread
    that has signalled or posted it has waited for 100 ms in contention. The living threads sent
    90 % of the signals."""
    waits = [
        (lock, waiters)
        for lock, threads in index.idle
        if lock.kind in SIGNALLED_KINDS and lock.signals_in_life is not None
        if (waiters := [thread for thread in threads if _waited_s(thread) >= _FALSE_IDLE_S])
    ]
    if not waits or any(thread.uses is None for thread in index.snapshot.threads if thread.alive):
        return
    signals: dict[int, dict[int, int]] = {}  # by lock and tid
    for thread in index.snapshot.threads:
        for use in (thread.uses or ()) if thread.alive else ():
            used_lock = index.locks.get(use.lock)
            if use.signals and used_lock is not None and used_lock.is_of_this_life(use):
                signals.setdefault(use.lock, {})[thread.tid] = use.signals
    for lock, waiters in waits:
        signalled = signals.get(lock.id, {})
        signallers = [index.threads[tid] for tid in signalled]
        if (
            signallers
            and sum(signalled.values()) >= (lock.signals_in_life or 0) * _FALSE_IDLE_SIGNALS
            and all(_is_held_up(thread) for thread in signallers)
        ):
            awaited = [thread.waiting_for.lock for thread in signallers if thread.waiting_for]
            first = index.locks.get(awaited[0])
            yield FalseIdle(
                lock=lock.id,
                tids=_tids(waiters),
                waiters=len(waiters),
                longest_wait_s=_longest_s(waiters),
                signallers=len(signallers),
                contended_lock=first.name if first is not None else f"lock {awaited[0]}",
                other_locks=len(set(awaited)) > 1,
                shortest_contended_s=min(map(_waited_s, signallers)),
            )


def _is_held_up(thread: Thread) -> bool:
    wait = thread.waiting_for
    return wait is not None and not wait.idle and wait.duration_s >= _FALSE_IDLE_S


def _find_high_rates(index: _ContentionIndex) -> Iterator[HighRate]:
    """A lock is taken a million times a second, and less than 0.1 % of the acquisitions wait."""
    # There may be many locks; few locks reach this number.
    min_acquisitions = _HIGH_RATE * index.period_s
    for lock in index.snapshot.locks:
        taken = lock.acquisitions
        if taken is None or taken < min_acquisitions:
            continue
        rates = index.rates(lock) if lock.id and lock.kind in CONTENTION_KINDS else None
        if (
            rates is not None
            and rates.acquisitions >= _HIGH_RATE
            and rates.contended < rates.acquisitions * _HIGH_RATE_CONTENDED
        ):
            yield HighRate(
                lock=lock.id,
                tids=(),
                acquisitions_per_s=rates.acquisitions,
                contended_per_s=rates.contended,
            )


_FINDERS: tuple[Callable[[_ContentionIndex], Iterator[Finding]], ...] = (
    _find_convoys,
    _find_serialised,
    _find_herds,
    _find_starved_writers,
    _find_long_holds,
    _find_false_idle,
    lambda index: oversubscription.find(index.snapshot, index.contended),
    lambda index: cpu_starvation.find(index.snapshot),
    _find_high_rates,
    lambda index: unsignalled_conditions.find(index.snapshot, index.idle),
)


def _tids(threads: Sequence[Thread]) -> tuple[int, ...]:
    return tuple(sorted(thread.tid for thread in threads))


def _waited_s(thread: Thread) -> float:
    return thread.waiting_for.duration_s if thread.waiting_for is not None else 0.0


def _longest_s(threads: Sequence[Thread]) -> float:
    return max(map(_waited_s, threads))
