"""Possible deadlocks through the guard of a static variable of a C++ function.

The first thread that calls the function runs the initialiser. Others wait in __cxa_guard_acquire()
until it has ended. The guard does not name that thread. But the thread has the function on its
stack. If just one other thread has the function there, that thread is likely to run the
initialiser. The thread may also be in another part of the function, so nothing is certain. If the
stack of any thread is not known, nothing is likely.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from locktop.collector.model import (
    BlockReason,
    Contents,
    Deadlock,
    DeadlockEdge,
    Frame,
    Thread,
    Wait,
)

DOUBT = (
    "the thread that runs the initialiser of the variable is known by its stack alone: it may be"
    " in another part of the function"
)
_ACQUIRE = "__cxa_guard_acquire"
#: A wait that has just begun may end soon.
_MIN_S = 1.0


def find(snapshot: Contents) -> tuple[Deadlock, ...]:
    """Return the possible deadlocks; those alone of which the other waits have known holders.

    Args:
        snapshot: the scan, with names of functions.
    """
    waits = {
        thread.tid: thread.waiting_for
        for thread in snapshot.threads
        if thread.alive and thread.waiting_for is not None
    }
    stacks = {
        thread.tid: snapshot.stacks.get(wait.stack if wait is not None else thread.stack, ())
        for thread in snapshot.threads
        if thread.alive
        for wait in (thread.waiting_for,)
    }
    if not all(stacks.values()):
        return ()
    known = {edge.tid for one in snapshot.deadlocks for edge in one.cycle}
    found: dict[int, Deadlock] = {}
    for tid, wait in waits.items():
        guarded = _guarded_function(stacks[tid])
        runner = _runner(guarded, stacks) if guarded is not None else 0
        cycle = _cycle(tid, runner, waits, snapshot.threads) if runner else ()
        if cycle and known.isdisjoint(edge.tid for edge in cycle):
            found.setdefault(wait.lock, _deadlock(cycle, waits))
    return tuple(found.values())


def _guarded_function(frames: Sequence[Frame]) -> tuple[str, str] | None:
    """Return function and module that wait for a guard; None if the thread waits for none."""
    for at, frame in enumerate(frames[:-1]):
        if frame.function == _ACQUIRE:
            caller = frames[at + 1]
            return (caller.function, caller.module) if caller.function else None
    return None


def _runner(guarded: tuple[str, str], stacks: Mapping[int, Sequence[Frame]]) -> int:
    """Return the only thread with the function on its stack that waits for no guard; 0: none."""
    within = [
        tid
        for tid, frames in stacks.items()
        if any((frame.function, frame.module) == guarded for frame in frames)
        and _guarded_function(frames) != guarded
    ]
    return within[0] if len(within) == 1 else 0


def _cycle(
    first: int, runner: int, waits: Mapping[int, Wait], threads: Sequence[Thread]
) -> tuple[DeadlockEdge, ...]:
    """Return the edges from a waiter for a guard back to it; () if none lead back."""
    sites = {(one.tid, held.lock): held.site for one in threads for held in one.holds}
    edges: list[DeadlockEdge] = []
    tid, holder, reason = first, runner, BlockReason.RUNS
    while len(edges) <= len(waits):
        wait = waits.get(tid)
        if wait is None or wait.timed or wait.duration_s < _MIN_S:
            return ()
        if edges:
            if len(wait.holders) != 1 or wait.idle:
                return ()
            holder, reason = wait.holders[0], BlockReason.HELD
        site = sites.get((holder, wait.lock), 0)
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
            return tuple(edges)
        tid = holder
    return ()


def _deadlock(cycle: Sequence[DeadlockEdge], waits: Mapping[int, Wait]) -> Deadlock:
    shortest = min((waits[edge.tid] for edge in cycle), key=lambda wait: wait.duration_s)
    return Deadlock(
        certain=False,
        since_s=shortest.duration_s,
        cycle=tuple(cycle),
        doubt=DOUBT,
        is_lower_bound=shortest.is_lower_bound,
    )
