"""A deadlock as a person in trouble wants to have it told: all names and places beside each other.

Plain data; ``export/deadlock_*.py`` and the screen say it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from locktop.collector.analysis import lock_classes
from locktop.collector.analysis.lock_classes import LockClass
from locktop.collector.analysis.lock_ordering_advice import Avoidance, avoidance, waited
from locktop.collector.model import (
    BlockReason,
    Deadlock,
    DeadlockEdge,
    Frame,
    Kind,
    Lock,
    Process,
    Snapshot,
    Thread,
    ThreadActivity,
)


@dataclass(frozen=True, slots=True)
class LockName:
    """A lock and what to call it, so that it is told from every other one."""

    id: int
    kind: Kind | None  # None: not known
    name: str


@dataclass(frozen=True, slots=True)
class Taken:
    """A lock that a thread has."""

    lock: LockName
    at: Frame | None  # where it was taken
    duration_s: float | None  # seconds held, None where that was not timed
    shared: bool  # for reading
    wanted_by: tuple[int, ...]  # tids that wait for it


@dataclass(frozen=True, slots=True)
class Member:
    """A thread of the circle: what it waits for, who has that, and what it has itself."""

    tid: int
    name: str
    waits_for: LockName
    duration_s: float  # seconds waited already
    is_lower_bound: bool  # it may be longer
    shared: bool  # for reading
    at: Frame | None  # the line of code that waits
    stack_id: int
    stack: tuple[Frame, ...]  # innermost first
    held_by: int  # tid, 0 nobody
    reason: BlockReason  # why held_by blocks this thread
    taken_at: Frame | None  # where held_by took it
    now: ThreadActivity | None  # what held_by does, where that was asked
    has: tuple[Taken, ...]  # the lock that was taken first first


@dataclass(frozen=True, slots=True)
class Follower:
    """A thread stuck behind the circle."""

    tid: int
    name: str
    waits_for: LockName | None
    holders: tuple[int, ...]  # of that, tids
    duration_s: float
    is_lower_bound: bool  # it may be longer
    at: Frame | None


@dataclass(frozen=True, slots=True)
class DeadlockReport:
    """All about one deadlock."""

    process: Process
    ended: bool  # the process is gone: it was deadlocked when it ended
    certain: bool
    doubt: str
    since_s: float
    is_lower_bound: bool  # it may be longer
    since: str  # ISO 8601, UTC, seconds; "" where it is not known
    #: Each waits for the next one, the last for the first; or one alone, see is_circle.
    circle: tuple[Member, ...]
    is_circle: bool  # False: nobody is left who could end this thread's wait
    behind: tuple[Follower, ...]
    avoidance: Avoidance
    locks: Mapping[int, LockName]  # of the circle, by id
    names: Mapping[int, str]  # of threads, by tid, as far as they have any


def reports(snapshot: Snapshot) -> tuple[DeadlockReport, ...]:
    """Return a report for each deadlock, in the order of ``snapshot.deadlocks``."""
    if not snapshot.deadlocks:
        return ()
    known = _Known(snapshot)
    return tuple(known.report(deadlock) for deadlock in snapshot.deadlocks)


class _Known:
    """A snapshot, indexed."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._threads: dict[int, Thread] = {thread.tid: thread for thread in snapshot.threads}
        self._names = {thread.tid: thread.name for thread in snapshot.threads if thread.name}
        self._locks: dict[int, Lock] = {lock.id: lock for lock in snapshot.locks}
        self._class_of: dict[int, LockClass] = lock_classes.by_lock(
            lock_classes.find(snapshot.locks)
        )

    def report(self, deadlock: Deadlock) -> DeadlockReport:
        snapshot = self._snapshot
        circle = tuple(self._member(edge) for edge in deadlock.cycle)
        return DeadlockReport(
            process=snapshot.process,
            ended=snapshot.ended,
            certain=deadlock.certain,
            doubt=deadlock.doubt,
            since_s=deadlock.since_s,
            is_lower_bound=deadlock.is_lower_bound,
            since="" if deadlock.is_lower_bound else _earlier(snapshot.taken_at, deadlock.since_s),
            circle=circle,
            is_circle=deadlock.cycle[-1].held_by == deadlock.cycle[0].tid,
            behind=tuple(self._follower(tid) for tid in self._longest_first(deadlock)),
            avoidance=avoidance(snapshot, deadlock),
            locks={member.waits_for.id: member.waits_for for member in circle},
            names=self._names,
        )

    def _longest_first(self, deadlock: Deadlock) -> list[int]:
        """Who has waited for longest came before the others."""
        return sorted(deadlock.stuck, key=lambda tid: -self._waited(tid))

    def _waited(self, tid: int) -> float:
        thread = self._threads.get(tid)
        wait = thread.waiting_for if thread is not None else None
        return wait.duration_s if wait is not None else 0.0

    def _member(self, edge: DeadlockEdge) -> Member:
        thread = self._threads.get(edge.tid)
        wait = thread.waiting_for if thread is not None else None
        at, duration_s = waited(self._snapshot, thread, edge)
        return Member(
            tid=edge.tid,
            name=thread.name if thread is not None else "",
            waits_for=self._lock(edge.waits_for),
            duration_s=duration_s,
            is_lower_bound=wait is not None and wait.is_lower_bound,
            shared=wait is not None and wait.shared,
            at=at,
            stack_id=edge.stack,
            stack=self._snapshot.stacks.get(edge.stack, ()),
            held_by=edge.held_by,
            reason=edge.reason,
            taken_at=self._snapshot.sites.get(edge.site),
            now=self._now(edge),
            has=self._taken(thread),
        )

    def _now(self, edge: DeadlockEdge) -> ThreadActivity | None:
        found = self._locks.get(edge.waits_for)
        now = found.holder_activity if found is not None else None
        return now if now is not None and now.tid == edge.held_by else None

    def _taken(self, thread: Thread | None) -> tuple[Taken, ...]:
        return tuple(
            Taken(
                lock=self._lock(held.lock),
                at=self._snapshot.sites.get(held.site),
                duration_s=held.duration_s,
                shared=held.shared,
                wanted_by=self._waiters(held.lock),
            )
            for held in (thread.holds if thread is not None else ())
        )

    def _waiters(self, lock: int) -> tuple[int, ...]:
        found = self._locks.get(lock)
        return found.waiters if found is not None else ()

    def _follower(self, tid: int) -> Follower:
        thread = self._threads.get(tid)
        wait = thread.waiting_for if thread is not None else None
        if thread is None or wait is None:
            name = thread.name if thread is not None else ""
            return Follower(tid, name, None, (), 0.0, False, None)
        edge = DeadlockEdge(tid, wait.lock, 0, wait.stack, 0)
        at, duration_s = waited(self._snapshot, thread, edge)
        lock = self._lock(wait.lock)
        return Follower(tid, thread.name, lock, wait.holders, duration_s, wait.is_lower_bound, at)

    def _lock(self, id_: int) -> LockName:
        found = self._locks.get(id_)
        if found is None:
            return LockName(id_, None, f"lock {id_}")
        name = lock_classes.single_name(found, self._class_of.get(id_))
        return LockName(id_, found.kind, name)


def _earlier(taken_at: str, by_s: float) -> str:
    """A saved snapshot may carry any text there."""
    try:
        then = datetime.fromisoformat(taken_at).astimezone(UTC) - timedelta(seconds=by_s)
    except (ValueError, OverflowError):
        return ""
    return then.strftime("%Y-%m-%dT%H:%M:%SZ")
