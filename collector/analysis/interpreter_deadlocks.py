"""Deadlocks over Python's global interpreter lock (GIL), whose waiters wake every 5 ms.

A thread keeps the GIL in a function of C and waits there for a lock. The thread that holds the lock
waits for the GIL. Two readings of the same waits do not show such a deadlock: the waits for the GIL
begin anew all the time. So this module finds the cycles, and a probe confirms them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from locktop.collector.model import BlockReason, Contents, Deadlock, DeadlockEdge, Wait

DOUBT = "the holder of a lock of the cycle could not be read a second time"


def find(snapshot: Contents, gil_waiters: Collection[int]) -> tuple[Deadlock, ...]:
    """Return the cycles over the GIL, the oldest first.

    Args:
        snapshot: the scan, with the holder of the GIL.
        gil_waiters: tids of threads that wait for the GIL.
    """
    waits = {
        thread.tid: wait
        for thread in snapshot.threads
        if thread.alive
        and (wait := thread.waiting_for) is not None
        and len(wait.holders) == 1
        and not wait.timed
    }
    reported = {edge.tid for deadlock in snapshot.deadlocks for edge in deadlock.cycle}
    deadlocks = []
    for tid in sorted(waits.keys() & set(gil_waiters)):
        cycle = _cycle(tid, waits)
        if cycle and reported.isdisjoint(edge.tid for edge in cycle):
            reported.update(edge.tid for edge in cycle)
            deadlocks.append(_deadlock(cycle, waits))
    return tuple(sorted(deadlocks, key=lambda deadlock: -deadlock.since_s))


def _cycle(first: int, waits: Mapping[int, Wait]) -> tuple[DeadlockEdge, ...]:
    """Return the edges from a thread back to it; () if none lead back."""
    edges: list[DeadlockEdge] = []
    tid = first
    while tid in waits and len(edges) <= len(waits):
        wait = waits[tid]
        edge = DeadlockEdge(
            tid=tid, waits_for=wait.lock, held_by=wait.holders[0], stack=wait.stack, site=0,
            reason=BlockReason.HELD,
        )  # fmt: skip
        edges.append(edge)
        tid = edge.held_by
        if tid == first:
            return tuple(edges)
    return ()


def _deadlock(cycle: tuple[DeadlockEdge, ...], waits: Mapping[int, Wait]) -> Deadlock:
    members = {edge.tid for edge in cycle}
    stuck: set[int] = set()
    size = -1
    while len(stuck) > size:
        size = len(stuck)
        blocked = members | stuck
        stuck.update(
            tid for tid, wait in waits.items() if tid not in members and wait.holders[0] in blocked
        )
    shortest = min((waits[tid] for tid in members), key=lambda wait: wait.duration_s)
    return Deadlock(
        certain=False,
        since_s=shortest.duration_s,
        cycle=cycle,
        doubt=DOUBT,
        stuck=tuple(sorted(stuck)),
        is_lower_bound=shortest.is_lower_bound,
    )
