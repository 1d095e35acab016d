"""Deadlock reports: a deadlock with all names and source locations, as plain data.

``format/deadlock.py`` makes the sentences. The exports and the screen lay them out.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from locktop.collector.analysis import lock_classes, semaphore_ownership
from locktop.collector.analysis.lock_ordering_advice import OrderingAdvice, wait_location
from locktop.collector.model import (
    Deadlock,
    DeadlockEdge,
    DeadlockReport,
    Follower,
    Lock,
    LockClass,
    LockName,
    Member,
    Snapshot,
    Taken,
    Thread,
    ThreadActivity,
    ThreadElsewhere,
)


def reports(snapshot: Snapshot) -> tuple[DeadlockReport, ...]:
    """Return a report of each deadlock, in the order of ``snapshot.deadlocks``."""
    if not snapshot.deadlocks:
        return ()
    builder = _ReportBuilder(snapshot)
    return tuple(builder.report(deadlock) for deadlock in snapshot.deadlocks)


class _ReportBuilder:
    """Makes reports from one snapshot, indexed by threads and locks."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._advice = OrderingAdvice(snapshot)
        self._threads: dict[int, Thread] = {thread.tid: thread for thread in snapshot.threads}
        others = {
            thread.tid: _name_elsewhere(thread)
            for thread in snapshot.threads_elsewhere
            if thread.comm
        }
        own = {thread.tid: thread.name for thread in snapshot.threads if thread.name}
        self._names = {**others, **own}
        self._locks: dict[int, Lock] = {lock.id: lock for lock in snapshot.locks}
        self._class_of: dict[int, LockClass] = lock_classes.classes_by_lock(
            lock_classes.find(snapshot.locks)
        )

    def report(self, deadlock: Deadlock) -> DeadlockReport:
        snapshot = self._snapshot
        circle = tuple(self._member(edge) for edge in deadlock.cycle)
        return DeadlockReport(
            process=snapshot.process,
            ended=snapshot.is_over,
            certain=deadlock.certain,
            doubt=deadlock.doubt,
            since_s=deadlock.since_s,
            is_lower_bound=deadlock.is_lower_bound,
            since=""
            if deadlock.is_lower_bound
            else moment_before(snapshot.taken_at, deadlock.since_s),
            circle=circle,
            is_circle=deadlock.cycle[-1].held_by == deadlock.cycle[0].tid,
            behind=tuple(self._follower(tid) for tid in self._longest_first(deadlock)),
            behind_in_part=deadlock.stuck_in_part,
            avoidance=self._advice.avoidance(deadlock),
            locks={member.waits_for.id: member.waits_for for member in circle},
            names=self._names,
            waiters=self._waiters_for_units(deadlock),
            process_hangs=snapshot.hang is not None and snapshot.hang.certain,
        )

    def _waiters_for_units(self, deadlock: Deadlock) -> tuple[int, ...]:
        locks = semaphore_ownership.semaphores_without_units(self._snapshot, (deadlock,))
        return locks[0].waiters if len(locks) == 1 else ()

    def _longest_first(self, deadlock: Deadlock) -> list[int]:
        """Return the stuck threads, the longest wait first."""
        return sorted(deadlock.stuck, key=lambda tid: -self._wait_s(tid))

    def _wait_s(self, tid: int) -> float:
        thread = self._threads.get(tid)
        wait = thread.waiting_for if thread is not None else None
        return wait.duration_s if wait is not None else 0.0

    def _member(self, edge: DeadlockEdge) -> Member:
        thread = self._threads.get(edge.tid)
        wait = thread.waiting_for if thread is not None else None
        location, duration_s = wait_location(self._snapshot, thread, edge)
        return Member(
            tid=edge.tid,
            name=thread.name if thread is not None else "",
            waits_for=self._lock(edge.waits_for),
            duration_s=duration_s,
            is_lower_bound=wait is not None and wait.is_lower_bound,
            shared=wait is not None and wait.shared,
            at=location,
            stack_id=edge.stack,
            stack=self._snapshot.stacks.get(edge.stack, ()),
            held_by=edge.held_by,
            reason=edge.reason,
            taken_at=self._snapshot.sites.get(edge.site),
            now=self._activity(edge),
            has=self._taken_locks(thread),
        )

    def _activity(self, edge: DeadlockEdge) -> ThreadActivity | None:
        lock = self._locks.get(edge.waits_for)
        activity = lock.holder_activity if lock is not None else None
        return activity if activity is not None and activity.tid == edge.held_by else None

    def _taken_locks(self, thread: Thread | None) -> tuple[Taken, ...]:
        return tuple(
            Taken(
                lock=self._lock(held.lock),
                at=self._snapshot.sites.get(held.site),
                duration_s=held.duration_s,
                is_lower_bound=held.is_lower_bound,
                shared=held.shared,
                wanted_by=self._waiters(held.lock),
            )
            for held in (thread.holds if thread is not None else ())
        )

    def _waiters(self, lock: int) -> tuple[int, ...]:
        held_lock = self._locks.get(lock)
        return held_lock.waiters if held_lock is not None else ()

    def _follower(self, tid: int) -> Follower:
        thread = self._threads.get(tid)
        wait = thread.waiting_for if thread is not None else None
        if thread is None or wait is None:
            name = thread.name if thread is not None else ""
            return Follower(
                tid=tid,
                name=name,
                waits_for=None,
                holders=(),
                duration_s=0.0,
                is_lower_bound=False,
                at=None,
            )
        edge = DeadlockEdge(tid=tid, waits_for=wait.lock, held_by=0, stack=wait.stack, site=0)
        location, duration_s = wait_location(self._snapshot, thread, edge)
        return Follower(
            tid=tid,
            name=thread.name,
            waits_for=self._lock(wait.lock),
            holders=wait.holders,
            duration_s=duration_s,
            is_lower_bound=wait.is_lower_bound,
            at=location,
        )

    def _lock(self, id_: int) -> LockName:
        lock = self._locks.get(id_)
        if lock is None:
            return LockName(id=id_, kind=None, name=f"lock {id_}")
        name = lock_classes.single_name(lock, self._class_of.get(id_))
        return LockName(id=id_, kind=lock.kind, name=name)


def _name_elsewhere(thread: ThreadElsewhere) -> str:
    return f"{thread.name} of {thread.comm} {thread.pid}" if thread.name else thread.comm


def moment_before(taken_at: str, by_s: float) -> str:
    """Return the time ``by_s`` before ``taken_at``; "" if that is no time, because a saved snapshot
    may have any text there."""
    try:
        then = datetime.fromisoformat(taken_at).astimezone(UTC) - timedelta(seconds=by_s)
    except (ValueError, OverflowError):
        return ""
    return then.strftime("%Y-%m-%dT%H:%M:%SZ")
