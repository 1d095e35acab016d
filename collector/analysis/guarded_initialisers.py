"""Possible deadlocks through the guard of a static variable of a C++ function.

The first thread that calls the function runs the initialiser. Others wait in __cxa_guard_acquire()
until it has ended. The guard does not name that thread. But the thread has the function on its
stack. If just one other thread has the function there, that thread is likely to run the
initialiser. The thread may also be in another part of the function, so nothing is certain. If the
stack of any thread is not known, nothing is likely. Where the machine code tells more, the cycle is
among the known deadlocks already (static_initialisers.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from locktop.collector.model import (
    BlockReason,
    Contents,
    Deadlock,
    DeadlockEdge,
    Frame,
    Wait,
)

DOUBT = (
    "the thread that runs the initialiser of the variable is known by its stack alone: it may be"
    " in another part of the function"
)
_ACQUIRE = "__cxa_guard_acquire"
#: A wait that has just begun may end soon.
_MIN_S = 1.0


class _Function(NamedTuple):
    name: str
    module: str


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
    guarded = {tid: function for tid in waits if (function := _guarded_function(stacks[tid]))}
    if not guarded:
        return ()
    runners = {function: _runner(function, stacks, guarded) for function in {*guarded.values()}}
    sites = {
        (thread.tid, held.lock): held.site for thread in snapshot.threads for held in thread.holds
    }
    reported = {edge.tid for deadlock in snapshot.deadlocks for edge in deadlock.cycle}
    deadlocks: dict[int, Deadlock] = {}
    for tid, function in guarded.items():
        wait, runner = waits[tid], runners[function]
        cycle = _cycle(tid, runner, waits, sites) if runner else ()
        if cycle and reported.isdisjoint(edge.tid for edge in cycle):
            deadlocks.setdefault(wait.lock, _deadlock(cycle, waits))
    return tuple(deadlocks.values())


def _guarded_function(frames: Sequence[Frame]) -> _Function | None:
    """Return the function that waits for a guard; None if the thread waits for none."""
    callers = callers_of_wait(frames)
    caller = callers[0] if callers else None
    return _Function(caller.function, caller.module) if caller and caller.function else None


def callers_of_wait(frames: Sequence[Frame]) -> Sequence[Frame]:
    """Return the callers of the call that waits for a guard; () if the thread waits for none."""
    for index, frame in enumerate(frames[:-1]):
        if frame.function == _ACQUIRE:
            return frames[index + 1 :]
    return ()


def _runner(
    function: _Function, stacks: Mapping[int, Sequence[Frame]], guarded: Mapping[int, _Function]
) -> int:
    """Return the only thread with the function on its stack that waits for no guard; 0: none."""
    within = [
        tid
        for tid, frames in stacks.items()
        if guarded.get(tid) != function
        and any((frame.function, frame.module) == function for frame in frames)
    ]
    return within[0] if len(within) == 1 else 0


def _cycle(
    first: int, runner: int, waits: Mapping[int, Wait], sites: Mapping[tuple[int, int], int]
) -> tuple[DeadlockEdge, ...]:
    """Return the edges from a waiter for a guard back to it; () if none lead back.

    Args:
        first: the waiter.
        runner: the thread that runs the initialiser.
        waits: all waits, by tid.
        sites: where threads took locks, by tid and lock.
    """
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
