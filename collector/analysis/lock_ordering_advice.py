"""Advice against a deadlock: an order for its locks, and the thread that violates the order.

Each thread of the cycle holds one lock and requests the next lock. So each of these threads could
take its two locks in the opposite order. The cycle alone does not show which thread is wrong. But
other threads may: the pair to change is the pair that other threads take least often in this order
and most often in the opposite order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from locktop.collector.model import (
    BlockReason,
    Deadlock,
    DeadlockEdge,
    Frame,
    Kind,
    Lock,
    Snapshot,
    Thread,
)
from locktop.collector.model.frames import whose

#: Kinds that a thread acquires and releases, so that the order of the acquisitions can change. A
#: call acquires a once; a semaphore counts where it is used as a lock.
ORDERED_KINDS = frozenset({Kind.MUTEX, Kind.RWLOCK, Kind.SPIN, Kind.CUSTOM, Kind.ONCE, Kind.SEM})


class Means(Enum):
    """A way to avoid the deadlock; the value is the word in JSON."""

    ORDER = "order"  # take the locks in one order
    ONE_PLACE = "one place"  # the same, but one source location takes all the locks
    ONCE_ONLY = "once only"  # a thread requests a lock that it holds: take the lock once
    RELEASE = "release"  # release a lock before a wait that is for no lock
    GIVE_BACK = "give back"  # release a lock before the thread that holds it ends
    NONE = "none"  # no order of locks helps, for example if threads join each other


@dataclass(frozen=True, slots=True)
class NestedAcquisition:
    """A thread of the cycle took the lock ``has`` and then requested the lock ``wants`` (ids)."""

    tid: int
    has: int
    wants: int
    has_at: Frame | None  # where the thread took the first lock
    wants_at: Frame | None  # where the thread waits for the second lock
    duration_s: float  # seconds waited

    @property
    def locations(self) -> tuple[Frame | None, Frame | None]:
        """The two source locations."""
        return self.has_at, self.wants_at


@dataclass(frozen=True, slots=True)
class Avoidance:
    """The advice."""

    means: Means
    order: tuple[int, ...] = ()  # lock ids in the order in which threads should take them
    change: NestedAcquisition | None = None  # what the program should change
    others: tuple[int, ...] = ()  # tids of the cycle that follow the order already
    #: How many threads outside the cycle take the locks of ``change`` in the proposed order.
    elsewhere: int = 0


def avoidance(snapshot: Snapshot, deadlock: Deadlock) -> Avoidance:
    """Return what would have avoided a deadlock of the snapshot."""
    if deadlock.cycle[-1].held_by != deadlock.cycle[0].tid:
        abandoned = deadlock.cycle[0].reason is BlockReason.ABANDONED
        return Avoidance(Means.GIVE_BACK if abandoned else Means.NONE)
    locks = {lock.id: lock for lock in snapshot.locks}
    steps = list(_steps(snapshot, deadlock))
    unordered = [step for step in steps if not _is_ordered(step.wants, locks)]
    if unordered:
        early = next((step for step in unordered if _is_ordered(step.has, locks)), None)
        return Avoidance(Means.RELEASE if early else Means.NONE, change=early)
    again = next((step for step in steps if step.has == step.wants), None)
    if again is not None:
        return Avoidance(Means.ONCE_ONLY, change=again)
    if len({step.has for step in steps}) < max(len(steps), 2):
        return Avoidance(Means.NONE)
    if len({step.locations for step in steps}) == 1 and None not in steps[0].locations:
        by_address = sorted((step.has for step in steps), key=lambda id_: _address(id_, locks))
        return Avoidance(Means.ONE_PLACE, tuple(by_address), steps[0])
    return _in_order(steps, _orders_elsewhere(snapshot, {step.tid for step in steps}))


def _is_ordered(lock: int, locks: Mapping[int, Lock]) -> bool:
    return lock in locks and locks[lock].kind in ORDERED_KINDS


def _address(lock: int, locks: Mapping[int, Lock]) -> int:
    return locks[lock].address if lock in locks else 0


def _in_order(
    steps: Sequence[NestedAcquisition], elsewhere: Mapping[tuple[int, int], set[int]]
) -> Avoidance:
    def against(step: NestedAcquisition) -> int:
        return len(elsewhere.get((step.wants, step.has), ()))

    def rank(step: NestedAcquisition) -> tuple[int, int, int, float]:
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
    return Avoidance(Means.ORDER, order, change, tuple(step.tid for step in rest), against(change))


def _steps(snapshot: Snapshot, deadlock: Deadlock) -> Iterator[NestedAcquisition]:
    """Yield the acquisitions of the cycle. A writer that goes first holds nothing yet, so the edge
    to it is none."""
    threads = {thread.tid: thread for thread in snapshot.threads}
    cycle = deadlock.cycle
    for at, edge in enumerate(cycle):
        before = cycle[at - 1]
        if not before.behind:
            wants_at, duration_s = waited(snapshot, threads.get(edge.tid), edge)
            yield NestedAcquisition(
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
    at = whose(frames) or (frames[0] if frames else site)
    return at, wait.duration_s if wait is not None else 0.0


def _orders_elsewhere(snapshot: Snapshot, circle: set[int]) -> dict[tuple[int, int], set[int]]:
    """Return by pair of locks which other threads held the first lock when they took, or requested,
    the second lock."""
    found: dict[tuple[int, int], set[int]] = {}
    for thread in snapshot.threads:
        if thread.tid in circle or not thread.holds:
            continue
        locks = [held.lock for held in thread.holds]
        if thread.waiting_for is not None:
            locks.append(thread.waiting_for.lock)
        for at, second in enumerate(locks):
            for first in locks[:at]:
                found.setdefault((first, second), set()).add(thread.tid)
    for cycle in snapshot.lock_order:
        for edge in cycle.edges:
            if edge.tid not in circle:
                found.setdefault((edge.from_, edge.to), set()).add(edge.tid)
    return found
