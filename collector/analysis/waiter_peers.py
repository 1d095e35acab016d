"""The only peer of the waiters that does not wait, where nothing shows who has what they need.

Peers are threads with the same outermost function, such as the connections of a server. A peer that
sleeps between two requests may have what the others wait for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from locktop.collector.model import Contents, Frame, Lock, Thread
from locktop.collector.model.frames import innermost_own_frame, is_standard_library

#: Seconds of waits a second, for locks without a known holder: fewer are not worth the queries.
_MIN_WAIT = 0.5
#: A query takes some 100 us for each thread.
_MAX_QUERIED = 8


def to_query(snapshot: Contents) -> frozenset[int]:
    """Return the threads whose stacks ``find`` needs, by tid; none if there are too many.

    Args:
        snapshot: A draft with classified waits and with rates.
    """
    unclear = [
        lock.rates.wait
        for lock in snapshot.locks
        if lock.waiters and not (lock.idle or lock.holders or lock.holders_probable)
    ]
    tids = frozenset(thread.tid for thread in _awake(snapshot))
    is_worth_it = sum(wait or 0.0 for wait in unclear) >= _MIN_WAIT
    return tids if is_worth_it and len(tids) <= _MAX_QUERIED else frozenset()


def find(snapshot: Contents, lock: Lock) -> tuple[Thread, Frame] | None:
    """Return the only peer of the waiters that does not wait, and the function of them all.

    Returns:
        None if several peers do not wait, or if the stack of a thread that may be one is not known.
    """
    waits = {thread.tid: thread.waiting_for for thread in snapshot.threads}
    stacks = {wait.stack for tid in lock.waiters if (wait := waits.get(tid)) is not None}
    roots = [_outermost_function(snapshot.stacks.get(stack, ())) for stack in stacks]
    root = roots[0] if roots else None
    if root is None or not all(other is not None and _is_same(root, other) for other in roots):
        return None
    peers: list[Thread] = []
    for thread in _awake(snapshot):
        if thread.now is not None and thread.now.call.startswith("futex"):
            continue  # its wait began after the reading of the threads
        stack = thread.now.stack if thread.now is not None and not thread.now.stack_age_s else 0
        begin = _outermost_function(snapshot.stacks.get(stack, ()))
        if begin is None:
            return None
        if _is_same(root, begin):
            peers.append(thread)
    return (peers[0], root) if len(peers) == 1 else None


def _awake(snapshot: Contents) -> Iterable[Thread]:
    """The living threads of the process that wait for no lock."""
    return (
        thread
        for thread in snapshot.threads
        if thread.alive and not thread.pid and thread.waiting_for is None
    )


def _outermost_function(frames: Sequence[Frame]) -> Frame | None:
    """The outermost function of the program; None if it is not known."""
    own = (frame for frame in reversed(frames) if frame.function and not is_standard_library(frame))
    return innermost_own_frame(own)


def _is_same(frame: Frame, other: Frame) -> bool:
    return (frame.function, frame.module) == (other.function, other.module)
