"""The only peer of the waiters that does not wait, where nothing shows who has what they need.

Peers are threads with the same outermost function, such as the connections of a server. A peer that
sleeps between two requests may have what the others wait for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from locktop.collector.model import Contents, Frame, Thread, Wait
from locktop.collector.model.frames import innermost_own_frame, is_standard_library

#: A function by its name and module, and the only thread with it that does not wait.
Function = tuple[str, str]
Peers = Mapping[Function, Thread]

#: Seconds of waits a second, for locks without a known holder: fewer are not worth the queries.
_MIN_WAIT = 0.5
#: A query takes some 100 us for each thread.
_MAX_QUERIED = 8


def to_query(snapshot: Contents) -> frozenset[int]:
    """Return the threads whose stacks ``only_peers`` needs, by tid; none if there are too many.

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


def only_peers(snapshot: Contents) -> Peers:
    """Return the threads that alone of their function do not wait.

    Returns:
        None at all if the stack of a thread that does not wait is not known.
    """
    peers: dict[Function, list[Thread]] = {}
    for thread in _awake(snapshot):
        now = thread.now
        if now is not None and now.call.startswith("futex"):
            continue  # its wait began after the reading of the threads
        stack = now.stack if now is not None and not now.stack_age_s else 0
        function = _outermost_function(snapshot.stacks.get(stack, ()))
        if function is None:
            return {}
        peers.setdefault(function, []).append(thread)
    return {function: threads[0] for function, threads in peers.items() if len(threads) == 1}


def find(
    stacks: Mapping[int, tuple[Frame, ...]], waits: Iterable[Wait], peers: Peers
) -> tuple[Thread, str] | None:
    """Return the only peer of all waiters that does not wait, and the name of their function.

    Args:
        stacks: Snapshot.stacks.
        waits: the waits for a lock without a known holder.
        peers: see only_peers().
    """
    functions = {_outermost_function(stacks.get(wait.stack, ())) for wait in waits if peers}
    function = functions.pop() if len(functions) == 1 else None
    peer = peers.get(function) if function is not None else None
    return (peer, function[0]) if peer is not None and function is not None else None


def _awake(snapshot: Contents) -> Iterable[Thread]:
    """The living threads of the process that wait for no lock."""
    return (
        thread
        for thread in snapshot.threads
        if thread.alive and not thread.pid and thread.waiting_for is None
    )


def _outermost_function(frames: Sequence[Frame]) -> Function | None:
    """The outermost function of the program; None if it is not known."""
    own = (frame for frame in reversed(frames) if frame.function and not is_standard_library(frame))
    frame = innermost_own_frame(own)
    return (frame.function, frame.module) if frame is not None else None
