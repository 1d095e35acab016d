"""What would keep a deadlock from happening again: an order for its locks, and who breaks it.

Each thread of a circle has one lock of it and wants the next one, so any one of them could be made
to take the two the other way round. The circle alone does not say which of them is wrong. What the
other threads do may: the pair that is taken in this order least often elsewhere, and most often in
the other one, is the one to change.
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

#: What a thread takes and gives back, so that it can be taken in another order. (A once is taken
#: by calling it, a semaphore where it is used as a lock.)
ORDERED_KINDS = frozenset({Kind.MUTEX, Kind.RWLOCK, Kind.SPIN, Kind.CUSTOM, Kind.ONCE, Kind.SEM})


class Means(Enum):
    """How it would be avoided."""

    ORDER = "order"  # the locks in one order
    ONE_PLACE = "one place"  # the same, but one place in the code takes all of them
    ONCE_ONLY = "once only"  # a thread wants what it has: it should take it once
    RELEASE = "release"  # a lock given back before a wait that is for no lock
    GIVE_BACK = "give back"  # a lock given back before the thread that had it ends
    NONE = "none"  # no order of locks helps: threads wait for each other's end, say


@dataclass(frozen=True, slots=True)
class Step:
    """What one thread of the circle did: it took ``has`` and then wanted ``wants`` (lock ids)."""

    tid: int
    has: int
    wants: int
    has_at: Frame | None  # where it took the first
    wants_at: Frame | None  # where it waits for the second
    duration_s: float  # seconds that it has waited

    @property
    def place(self) -> tuple[Frame | None, Frame | None]:
        """The two lines of code."""
        return self.has_at, self.wants_at


@dataclass(frozen=True, slots=True)
class Avoidance:
    """The answer. ``order`` has lock ids, that to be taken first first; () where there is none."""

    means: Means
    order: tuple[int, ...] = ()
    change: Step | None = None  # what would have to be changed
    others: tuple[int, ...] = ()  # tids of the circle that keep to the order already
    #: Threads beside the circle that take the locks of ``change`` in the order proposed.
    elsewhere: int = 0


def avoidance(snapshot: Snapshot, deadlock: Deadlock) -> Avoidance:
    """Return what would have avoided ``deadlock``, which is one of ``snapshot``."""
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
    if len({step.place for step in steps}) == 1 and None not in steps[0].place:
        by_address = sorted((step.has for step in steps), key=lambda id_: _address(id_, locks))
        return Avoidance(Means.ONE_PLACE, tuple(by_address), steps[0])
    return _in_order(steps, _seen_elsewhere(snapshot, {step.tid for step in steps}))


def _is_ordered(lock: int, locks: Mapping[int, Lock]) -> bool:
    return lock in locks and locks[lock].kind in ORDERED_KINDS


def _address(lock: int, locks: Mapping[int, Lock]) -> int:
    return locks[lock].address if lock in locks else 0


def _in_order(steps: Sequence[Step], elsewhere: Mapping[tuple[int, int], set[int]]) -> Avoidance:
    def against(step: Step) -> int:
        return len(elsewhere.get((step.wants, step.has), ()))

    def rank(step: Step) -> tuple[int, int, int, float]:
        alike = sum(step.place == other.place for other in steps)
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


def _steps(snapshot: Snapshot, deadlock: Deadlock) -> Iterator[Step]:
    """A writer that is only waited behind has nothing yet: it is no step."""
    threads = {thread.tid: thread for thread in snapshot.threads}
    cycle = deadlock.cycle
    for at, edge in enumerate(cycle):
        before = cycle[at - 1]
        if not before.behind:
            wait = waited(snapshot, threads.get(edge.tid), edge)
            yield Step(
                edge.tid,
                before.waits_for,
                edge.waits_for,
                snapshot.sites.get(before.site),
                wait[0],
                wait[1],
            )


def waited(
    snapshot: Snapshot, thread: Thread | None, edge: DeadlockEdge
) -> tuple[Frame | None, float]:
    """Return where in the code the thread of an edge waits, and for how many seconds already."""
    wait = thread.waiting_for if thread is not None else None
    frames = snapshot.stacks.get(edge.stack, ())
    site = snapshot.sites.get(wait.site) if wait is not None else None
    at = whose(frames) or (frames[0] if frames else site)
    return at, wait.duration_s if wait is not None else 0.0


def _seen_elsewhere(snapshot: Snapshot, circle: set[int]) -> dict[tuple[int, int], set[int]]:
    """Which other threads had the first lock of a pair when they took, or wanted, the second."""
    seen: dict[tuple[int, int], set[int]] = {}
    for thread in snapshot.threads:
        if thread.tid in circle or not thread.holds:
            continue
        locks = [held.lock for held in thread.holds]
        if thread.waiting_for is not None:
            locks.append(thread.waiting_for.lock)
        for at, second in enumerate(locks):
            for first in locks[:at]:
                seen.setdefault((first, second), set()).add(thread.tid)
    for cycle in snapshot.lock_order:
        for edge in cycle.edges:
            if edge.tid not in circle:
                seen.setdefault((edge.from_, edge.to), set()).add(edge.tid)
    return seen
