"""Advice against a deadlock: an order for its locks, and the thread that violates the order.

Each thread of the cycle holds one lock and requests the next lock. So each of these threads could
take its two locks in the opposite order. The cycle alone does not show which thread is wrong. But
other threads may. The advice changes the pair that other threads take least often in this order
and most often in the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property

from msgspec import Struct

from locktop.collector.model import (
    Avoidance,
    BlockReason,
    Deadlock,
    DeadlockEdge,
    Frame,
    LockingStep,
    Remedy,
    Snapshot,
    Thread,
)
from locktop.collector.model.frames import innermost_own_frame
from locktop.collector.model.kinds import ORDERABLE_KINDS


class OrderingAdvice:
    """Gives advice against the deadlocks of one snapshot.

    The work for a deadlock grows with its cycle and with the threads that use the locks of the
    cycle. The indexes of the snapshot are made once for all deadlocks.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._locks = {lock.id: lock for lock in snapshot.locks}
        self._threads = {thread.tid: thread for thread in snapshot.threads}

    def avoidance(self, deadlock: Deadlock) -> Avoidance:
        """Return what would have avoided a deadlock of the snapshot."""
        if deadlock.cycle[-1].held_by != deadlock.cycle[0].tid:
            left = deadlock.cycle[0].reason in (BlockReason.ABANDONED, BlockReason.AT_FORK)
            return Avoidance(Remedy.GIVE_BACK if left else Remedy.NONE)
        steps = list(self._steps(deadlock))
        joined = {edge.waits_for for edge in deadlock.cycle if edge.reason is BlockReason.LIVES}
        # A lock that is only known as a futex is a lock if a thread holds it.
        ordered = {
            edge.waits_for
            for edge in deadlock.cycle
            if edge.reason is BlockReason.PROBABLY_HELD or self._is_ordered(edge.waits_for)
        }
        ordered -= joined  # a join may wait for an object of any kind
        unordered = [step for step in steps if step.wants not in ordered]
        if unordered:
            early = next((step for step in unordered if step.has in ordered), None)
            return Avoidance(Remedy.RELEASE if early else Remedy.NONE, change=early)
        # The loader takes its lock in calls such as dlopen(), around code of the program.
        early = next((step for step in steps if self._is_of_loader(step.wants)), None)
        if early is not None and early.has != early.wants:
            return Avoidance(Remedy.RELEASE, change=early)
        again = next((step for step in steps if step.has == step.wants), None)
        if again is not None:
            return Avoidance(Remedy.ONCE_ONLY, change=again)
        if len({step.has for step in steps}) < max(len(steps), 2):
            return Avoidance(Remedy.NONE)
        if len({step.locations for step in steps}) == 1 and None not in steps[0].locations:
            by_address = sorted((step.has for step in steps), key=self._address)
            return Avoidance(remedy=Remedy.ONE_LOCATION, order=tuple(by_address), change=steps[0])
        return self._order_advice(steps)

    def _is_ordered(self, lock: int) -> bool:
        return lock in self._locks and self._locks[lock].kind in ORDERABLE_KINDS

    def _is_of_loader(self, lock: int) -> bool:
        return lock in self._locks and self._locks[lock].is_of_loader

    def _address(self, lock: int) -> int:
        return self._locks[lock].address if lock in self._locks else 0

    def _order_advice(self, steps: Sequence[LockingStep]) -> Avoidance:
        tids = {step.tid for step in steps}
        alike = Counter(step.locations for step in steps)

        def against(step: LockingStep) -> int:
            return len(self._threads_with_order(step.wants, step.has) - tids)

        def rank(step: LockingStep) -> tuple[int, int, int, float]:
            return (
                len(self._threads_with_order(step.has, step.wants) - tids),
                -against(step),
                alike[step.locations],
                step.duration_s,
            )

        change = min(steps, key=rank)
        index = steps.index(change)
        rest = [*steps[index + 1 :], *steps[:index]]
        order = (*(step.has for step in rest), change.has)
        others = tuple(step.tid for step in rest)
        return Avoidance(
            remedy=Remedy.ORDER,
            order=order,
            change=change,
            others=others,
            elsewhere=against(change),
        )

    def _steps(self, deadlock: Deadlock) -> Iterator[LockingStep]:
        """Yield the acquisitions of the cycle. A writer that goes first holds nothing yet, so the
        edge to it is none."""
        cycle, sites = deadlock.cycle, self._snapshot.sites
        for index, edge in enumerate(cycle):
            before = cycle[index - 1]
            if not before.behind:
                wants_at, duration_s = wait_location(
                    self._snapshot, self._threads.get(edge.tid), edge
                )
                yield LockingStep(
                    tid=edge.tid,
                    has=before.waits_for,
                    wants=edge.waits_for,
                    has_at=sites.get(before.site),
                    wants_at=wants_at,
                    duration_s=duration_s,
                )

    def _threads_with_order(self, first: int, second: int) -> set[int]:
        """Return the threads that held the first lock when they took, or requested, the second."""
        uses, others = self._uses.get(first, {}), self._uses.get(second, {})
        tids = {
            tid for tid in uses.keys() & others.keys() if uses[tid].first_at < others[tid].last_at
        }
        return tids | self._observed.get((first, second), set())

    @cached_property
    def _uses(self) -> dict[int, dict[int, _Use]]:
        """By lock and tid: when a thread that holds locks took, or requested, the lock."""
        uses: dict[int, dict[int, _Use]] = {}
        for thread in self._snapshot.threads:
            locks = [held.lock for held in thread.holds]
            if locks and thread.waiting_for is not None:
                locks.append(thread.waiting_for.lock)
            for index, lock in enumerate(locks):
                uses.setdefault(lock, {}).setdefault(thread.tid, _Use(index, index)).last_at = index
        return uses

    @cached_property
    def _observed(self) -> dict[tuple[int, int], set[int]]:
        """The threads in the potential deadlocks, by held and requested lock."""
        tids_by_order: dict[tuple[int, int], set[int]] = {}
        for cycle in self._snapshot.lock_order:
            for edge in cycle.edges:
                tids_by_order.setdefault((edge.from_, edge.to), set()).add(edge.tid)
        return tids_by_order


class _Use(Struct):
    """The first and the last place of a lock among the locks that a thread holds and requests."""

    first_at: int
    last_at: int


def wait_location(
    snapshot: Snapshot, thread: Thread | None, edge: DeadlockEdge
) -> tuple[Frame | None, float]:
    """Return the source location where the thread of an edge waits, and the seconds waited."""
    wait = thread.waiting_for if thread is not None else None
    frames = snapshot.stacks.get(edge.stack, ())
    site = snapshot.sites.get(wait.site) if wait is not None else None
    frame = innermost_own_frame(frames) or (frames[0] if frames else site)
    return frame, wait.duration_s if wait is not None else 0.0
