"""The ids of the stacks that a snapshot has of its threads."""

from __future__ import annotations

from locktop.collector.model import Snapshot, Thread


def stack_id(snapshot: Snapshot, thread: Thread) -> int:
    """Return the id of a thread's stack, also in a wait that the library does not observe."""
    if thread.stack or thread.waiting_for is not None:
        return thread.stack
    waits = (wait.stack for wait in snapshot.unobserved_waits if wait.tid == thread.tid)
    return next(waits, 0)
