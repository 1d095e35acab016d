"""Possible deadlocks over locks that name no holder, through threads that probably hold them.

A cycle counts if one of its locks has probable holders alone, and each wait has lasted. A lock with
several probable holders blocks its waiters only as long as all of these hold it, so it takes part
with one holder alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from locktop.collector.model import (
    BlockReason,
    Contents,
    Deadlock,
    DeadlockEdge,
    HolderEvidence,
    Lock,
    Wait,
)

#: By what shows the holder.
DOUBTS = {
    HolderEvidence.GUARD: "a lock of the cycle names no holder: its holder is known by the code"
    " that goes on to release it",
    HolderEvidence.WAKER: "a lock of the cycle names no holder: its holder is known by the wakes"
    " of its waiters",
    HolderEvidence.PYTHON: "a lock of the cycle names no holder: a thread in its `with` block may"
    " have released it before the end",
}
#: A wait that has just begun may end soon.
_MIN_S = 1.0


def find(snapshot: Contents) -> tuple[Deadlock, ...]:
    """Return the cycles with a probable holder, the oldest first.

    Args:
        snapshot: the scan, with Lock.holders_probable.
    """
    locks = {lock.id: lock for lock in snapshot.locks if lock.holders_probable}
    if not locks:
        return ()
    min_s = 0.0 if snapshot.source == "core" else _MIN_S  # a core has no times, and does not move
    waits = {
        thread.tid: wait
        for thread in snapshot.threads
        if thread.alive and (wait := thread.waiting_for) is not None and _lasts(wait, min_s)
    }
    sites = {
        (thread.tid, held.lock): held.site for thread in snapshot.threads for held in thread.holds
    }
    reported = {edge.tid for deadlock in snapshot.deadlocks for edge in deadlock.cycle}
    deadlocks = []
    for tid in sorted(waits):
        cycle = _cycle(tid, waits, locks, sites)
        if cycle and reported.isdisjoint(edge.tid for edge in cycle):
            reported.update(edge.tid for edge in cycle)
            deadlocks.append(_deadlock(cycle, waits, locks))
    return tuple(sorted(deadlocks, key=lambda deadlock: -deadlock.since_s))


def _lasts(wait: Wait, min_s: float) -> bool:
    return not wait.timed and not wait.idle and wait.duration_s >= min_s


def _cycle(
    first: int,
    waits: Mapping[int, Wait],
    locks: Mapping[int, Lock],
    sites: Mapping[tuple[int, int], int],
) -> tuple[DeadlockEdge, ...]:
    """Return the edges from a thread back to it over a probable holder; () if none lead back."""
    edges: list[DeadlockEdge] = []
    tid, is_probable = first, False
    while len(edges) <= len(waits):
        wait = waits.get(tid)
        if wait is None:
            return ()
        lock = locks.get(wait.lock)
        if len(wait.holders) == 1:
            holder, reason = wait.holders[0], BlockReason.HELD
            site = sites.get((holder, wait.lock), 0)
        elif lock is not None and not wait.holders and len(lock.holders_probable) == 1:
            probable = lock.holders_probable[0]
            holder, site, reason = probable.tid, probable.site, BlockReason.PROBABLY_HELD
            is_probable = True
        else:
            return ()
        edges.append(
            DeadlockEdge(
                tid=tid,
                waits_for=wait.lock,
                held_by=holder,
                stack=wait.stack,
                site=site,
                reason=reason,
            )
        )
        if holder == first:
            return tuple(edges) if is_probable else ()
        tid = holder
    return ()


def _stuck(
    cycle: Sequence[DeadlockEdge], waits: Mapping[int, Wait], locks: Mapping[int, Lock]
) -> tuple[int, ...]:
    """Return the ids of the threads that wait for a thread of the cycle, in order."""
    members = {edge.tid for edge in cycle}
    stuck: set[int] = set()
    size = -1
    while len(stuck) > size:
        size = len(stuck)
        stuck.update(
            tid
            for tid, wait in waits.items()
            if tid not in members and {*_holders(wait, locks)} & (members | stuck)
        )
    return tuple(sorted(stuck))


def _holders(wait: Wait, locks: Mapping[int, Lock]) -> tuple[int, ...]:
    lock = locks.get(wait.lock)
    if wait.holders or lock is None:
        return wait.holders
    return tuple(holder.tid for holder in lock.holders_probable)


def _deadlock(
    cycle: Sequence[DeadlockEdge], waits: Mapping[int, Wait], locks: Mapping[int, Lock]
) -> Deadlock:
    lock = next(edge.waits_for for edge in cycle if edge.reason is BlockReason.PROBABLY_HELD)
    shortest = min((waits[edge.tid] for edge in cycle), key=lambda wait: wait.duration_s)
    return Deadlock(
        certain=False,
        since_s=shortest.duration_s,
        cycle=tuple(cycle),
        doubt=DOUBTS[locks[lock].holders_probable[0].evidence],
        stuck=_stuck(cycle, waits, locks),
        is_lower_bound=shortest.is_lower_bound,
    )
