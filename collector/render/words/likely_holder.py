"""The thread that probably holds a lock whose holder is not known."""

from __future__ import annotations

from locktop.collector.model import Contents, Lock, Thread, ThreadActivity
from locktop.collector.model.kinds import HELD_KINDS
from locktop.collector.render.words import activity


def find(snapshot: Contents, lock: Lock) -> Thread | None:
    """Return the only living thread that is not known to wait for anything; None without one.

    The scan shows that thread, and its hold is only likely. There is none if the lock may be free,
    or if a thread of another process may hold it. A lock of a kind with holders is free without
    one, unless the library was not there all the time. And a thread that waits behind a known
    holder may have the lock as well. A thread in a futex call began a wait after the scan read the
    threads.
    """
    records_holders = lock.kind in HELD_KINDS and not snapshot.is_sampled
    is_free = records_holders and snapshot.complete and snapshot.level != "counting"
    if is_free or snapshot.threads_elsewhere:
        return None
    waits = [thread.waiting_for for thread in snapshot.threads if thread.alive]
    if any(wait is not None and not wait.idle and (wait.holders or wait.pshared) for wait in waits):
        return None
    unobserved = set(snapshot.unobserved_waiters)
    awake = [
        thread
        for thread in snapshot.threads
        if thread.alive and thread.waiting_for is None and thread.tid not in unobserved
    ]
    if len(awake) != 1 or _waits_by_now(awake[0].now):
        return None
    return awake[0]


def _waits_by_now(now: ThreadActivity | None) -> bool:
    return now is not None and now.call.startswith("futex")


def phrase(thread: Thread, name: str) -> str:
    """Return what follows on "holder not known": the thread of find(), and what it does."""
    now = activity.doing(thread.now, thread.tid)
    return f"; the only thread that does not wait: {name}{', ' * bool(now)}{now}"
