"""Possible deadlocks between a join of Python and a lock that the joining thread holds.

From Python 3.13 on, a join waits for an event with a semaphore of its own. So the wait does not
tell which thread the join needs. The needed thread may want a lock of the joining thread.
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
from locktop.collector.model.frames import PYTHON

DOUBT = "it is not known which thread the join waits for: it may be another one, which goes on"
#: A shorter wait for a lock of a joining thread is usual: the thread that is to end still works.
_MIN_S = 10.0


def find(snapshot: Contents) -> tuple[Deadlock, ...]:
    """Return a possible deadlock for each join that keeps another thread from a lock.

    Args:
        snapshot: the scan, with Python functions.
    """
    reported = {edge.tid for deadlock in snapshot.deadlocks for edge in deadlock.cycle}
    joins = {
        thread.tid: thread
        for thread in snapshot.threads
        if thread.tid not in reported
        and (wait := _long_wait(thread)) is not None
        and _is_join(snapshot.stacks.get(wait.stack, ()))
    }
    deadlocks: dict[int, Deadlock] = {}
    for thread in sorted(snapshot.threads, key=_longest_first) if joins else ():
        wait = _long_wait(thread)
        if wait is None or wait.idle or len(wait.holders) != 1 or thread.tid in reported:
            continue
        joining = joins.get(wait.holders[0])
        if joining is not None and joining.tid != thread.tid:
            deadlocks.setdefault(joining.tid, _deadlock(thread, wait, joining))
    return tuple(deadlocks.values())


def _long_wait(thread: Thread) -> Wait | None:
    """Return the wait of a living thread, if it has no time limit and has lasted."""
    wait = thread.waiting_for if thread.alive else None
    return wait if wait is not None and not wait.timed and wait.duration_s >= _MIN_S else None


def _longest_first(thread: Thread) -> float:
    return -thread.waiting_for.duration_s if thread.waiting_for is not None else 0.0


def _is_join(frames: Sequence[Frame]) -> bool:
    """Return whether the innermost function of Python is Thread.join()."""
    innermost = next((frame for frame in frames if frame.module == PYTHON), None)
    return innermost is not None and (innermost.function, innermost.file) == (
        "join",
        "threading.py",
    )


def _deadlock(thread: Thread, wait: Wait, joining: Thread) -> Deadlock:
    join = joining.waiting_for
    assert join is not None
    sites: Mapping[int, int] = {held.lock: held.site for held in joining.holds}
    shortest = min(wait, join, key=lambda wait_: wait_.duration_s)
    return Deadlock(
        certain=False,
        since_s=shortest.duration_s,
        cycle=(
            DeadlockEdge(
                tid=thread.tid,
                waits_for=wait.lock,
                held_by=joining.tid,
                stack=wait.stack,
                site=sites.get(wait.lock, 0),
            ),
            DeadlockEdge(
                tid=joining.tid,
                waits_for=join.lock,
                held_by=thread.tid,
                stack=join.stack,
                site=0,
                reason=BlockReason.LIVES,
            ),
        ),
        doubt=DOUBT,
        is_lower_bound=shortest.is_lower_bound,
    )
