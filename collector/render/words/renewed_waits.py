"""Waits with a time limit that threads begin again and again, such as for a lock of MariaDB."""

from __future__ import annotations

from collections.abc import Sequence

from locktop.collector.model import Kind, Thread
from locktop.collector.render.words.snapshot_index import SnapshotIndex

#: Seconds of waits a second from which on a thread hardly did anything else.
_MIN_RATE = 0.9
#: The waits before must be so many times as long as the longest present one.
_MIN_TIMES = 2.0


def earlier_waits_s(index: SnapshotIndex, waiters: Sequence[Thread]) -> float:
    """Return the seconds that a thread waited for its condition in waits with a time limit.

    The greatest of all threads counts. 0.0: no thread waits alone for its condition and without a
    break, or nobody counts its waits.

    Args:
        index: the snapshot.
        waiters: threads that wait.
    """
    waits = [thread.waiting_for for thread in waiters if thread.waiting_for is not None]
    longest_s = max((wait.duration_s for wait in waits), default=0.0)
    waited_s = max((_thread_waits_s(index, thread) for thread in waiters), default=0.0)
    return waited_s if waited_s >= _MIN_TIMES * longest_s else 0.0


def _thread_waits_s(index: SnapshotIndex, thread: Thread) -> float:
    wait = thread.waiting_for
    lock = index.locks.get(wait.lock) if wait is not None else None
    if wait is None or lock is None or wait.kind is not Kind.COND or not wait.timed:
        return 0.0
    is_alone = lock.waiters == (thread.tid,) and (lock.rates.wait or 0.0) >= _MIN_RATE
    return lock.counted_wait_s if is_alone else 0.0
