"""The thread that probably holds a lock whose holder is not known."""

from __future__ import annotations

from locktop.collector.model import Contents, Lock, Thread, ThreadActivity
from locktop.collector.model.kinds import HELD_KINDS
from locktop.collector.render.words import activity

#: Why a thread is the likely holder.
WHY = "the only thread that does not wait"


def find(snapshot: Contents, lock: Lock, only_awake: Thread | None) -> Thread | None:
    """Return ``only_awake`` if it may have the lock.

    The scan shows that thread, and its hold is only likely. Some thread waits for the lock. A
    lock of a kind with holders is free without one, unless the library was not there all the time.

    Args:
        snapshot: the process.
        lock: a lock whose holder is not known.
        only_awake: the thread of find_only_awake().
    """
    records_holders = lock.kind in HELD_KINDS and not snapshot.is_sampled
    is_free = records_holders and snapshot.complete and snapshot.level != "counting"
    return None if is_free or not lock.waiters or lock.idle else only_awake


def find_only_awake(snapshot: Contents) -> Thread | None:
    """Return the only living thread that is not known to wait for anything; None without one.

    There is none if a thread of another process may hold a lock. And a thread that waits behind a
    known holder may have another lock as well. A thread in a futex call began a wait after the scan
    read the threads.
    """
    if others_may_hold(snapshot):
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


def others_may_hold(snapshot: Contents) -> bool:
    """Return whether another process, or a thread behind a known holder, may hold a lock."""
    waits = [thread.waiting_for for thread in snapshot.threads if thread.alive]
    return bool(snapshot.threads_elsewhere) or any(
        wait is not None and not wait.idle and (wait.holders or wait.pshared) for wait in waits
    )


def _waits_by_now(now: ThreadActivity | None) -> bool:
    return now is not None and now.call.startswith("futex")


def phrase(thread: Thread, name: str, why: str = WHY) -> str:
    """Return what follows on "holder not known": the thread of find(), and what it does."""
    now = activity.doing(thread.now, thread.tid)
    return f"; {why}: {name}{', ' * bool(now)}{now}"
