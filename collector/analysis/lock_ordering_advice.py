"""Advice against a deadlock: an order for its locks, and the thread that violates the order.

Each thread of the cycle holds one lock and requests the next lock. So each of these threads could
take its two locks in the opposite order. The cycle alone does not show which thread is wrong. But
other threads may. The advice changes the pair that other threads take least often in this order
and most often in the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from locktop.collector.model import (
    Avoidance,
    BlockReason,
    Deadlock,
    DeadlockEdge,
    Frame,
    Kind,
    Lock,
    LockingStep,
    Remedy,
    Snapshot,
    Thread,
)
from locktop.collector.model.frames import innermost_own_frame

#: Kinds that a thread acquires and releases, so that the order of the acquisitions can change. A
#: call acquires a once; a semaphore counts where it is used as a lock.
ORDERED_KINDS = frozenset({Kind.MUTEX, Kind.RWLOCK, Kind.SPIN, Kind.CUSTOM, Kind.ONCE, Kind.SEM})


def avoidance(snapshot: Snapshot, deadlock: Deadlock) -> Avoidance:
    """Return what would have avoided a deadlock of the snapshot."""
    if deadlock.cycle[-1].held_by != deadlock.cycle[0].tid:
        abandoned = deadlock.cycle[0].reason is BlockReason.ABANDONED
        return Avoidance(Remedy.GIVE_BACK if abandoned else Remedy.NONE)
    locks = {lock.id: lock for lock in snapshot.locks}
    steps = list(_steps(snapshot, deadlock))
    unordered = [step for step in steps if not _is_ordered(step.wants, locks)]
    if unordered:
        early = next((step for step in unordered if _is_ordered(step.has, locks)), None)
        return Avoidance(Remedy.RELEASE if early else Remedy.NONE, change=early)
    again = next((step for step in steps if step.has == step.wants), None)
    if again is not None:
        return Avoidance(Remedy.ONCE_ONLY, change=again)
    if len({step.has for step in steps}) < max(len(steps), 2):
        return Avoidance(Remedy.NONE)
    if len({step.locations for step in steps}) == 1 and None not in steps[0].locations:
        by_address = sorted((step.has for step in steps), key=lambda id_: _address(id_, locks))
        return Avoidance(Remedy.ONE_LOCATION, tuple(by_address), steps[0])
    return _in_order(steps, _orders_elsewhere(snapshot, {step.tid for step in steps}))


def _is_ordered(lock: int, locks: Mapping[int, Lock]) -> bool:
    return lock in locks and locks[lock].kind in ORDERED_KINDS


def _address(lock: int, locks: Mapping[int, Lock]) -> int:
    return locks[lock].address if lock in locks else 0


def _in_order(
    steps: Sequence[LockingStep], elsewhere: Mapping[tuple[int, int], set[int]]
) -> Avoidance:
    def against(step: LockingStep) -> int:
        return len(elsewhere.get((step.wants, step.has), ()))

    def rank(step: LockingStep) -> tuple[int, int, int, float]:
        alike = sum(step.locations == other.locations for other in steps)
        return (
            len(elsewhere.get((step.has, step.wants), ())),
            -against(step),
            alike,
            step.duration_s,
        )

    change = min(steps, key=rank)
    at = steps.index(change)
    rest = [*steps[at + 1 :], *steps[:at]]
    order = (*(step.has for step in rest), change.has)
    return Avoidance(Remedy.ORDER, order, change, tuple(step.tid for step in rest), against(change))


def _steps(snapshot: Snapshot, deadlock: Deadlock) -> Iterator[LockingStep]:
    """Yield the acquisitions of the cycle. A writer that goes first holds nothing yet, so the edge
    to it is none."""
    threads = {thread.tid: thread for thread in snapshot.threads}
    cycle = deadlock.cycle
    for at, edge in enumerate(cycle):
        before = cycle[at - 1]
        if not before.behind:
            wants_at, duration_s = waited(snapshot, threads.get(edge.tid), edge)
            yield LockingStep(
                tid=edge.tid,
                has=before.waits_for,
                wants=edge.waits_for,
                has_at=snapshot.sites.get(before.site),
                wants_at=wants_at,
                duration_s=duration_s,
            )


def waited(
    snapshot: Snapshot, thread: Thread | None, edge: DeadlockEdge
) -> tuple[Frame | None, float]:
    """Return the source location where the thread of an edge waits, and the seconds waited."""
    wait = thread.waiting_for if thread is not None else None
    frames = snapshot.stacks.get(edge.stack, ())
    site = snapshot.sites.get(wait.site) if wait is not None else None
    at = innermost_own_frame(frames) or (frames[0] if frames else site)
    return at, wait.duration_s if wait is not None else 0.0


def _orders_elsewhere(snapshot: Snapshot, cycle_tids: set[int]) -> dict[tuple[int, int], set[int]]:
    """Return by pair of locks which other threads held the first lock when they took, or requested,
    the second lock."""
    found: dict[tuple[int, int], set[int]] = {}
    for thread in snapshot.threads:
        if thread.tid in cycle_tids or not thread.holds:
            continue
        locks = [held.lock for held in thread.holds]
        if thread.waiting_for is not None:
            locks.append(thread.waiting_for.lock)
        for at, second in enumerate(locks):
            for first in locks[:at]:
                found.setdefault((first, second), set()).add(thread.tid)
    for cycle in snapshot.lock_order:
        for edge in cycle.edges:
            if edge.tid not in cycle_tids:
                found.setdefault((edge.from_, edge.to), set()).add(edge.tid)
    return found
