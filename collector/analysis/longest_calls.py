"""One duration of a holder's system call, where two probes of a scan queried the thread."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from locktop.collector.model import ActivityState, Lock, Thread, ThreadActivity


def apply(threads: tuple[Thread, ...], locks: Iterable[Lock]) -> tuple[Thread, ...]:
    """Return the threads with the longest known duration of their calls.

    Holders are queried last. If such a thread is in the same call, its call lasts the longest.

    Args:
        threads: Threads, some with an activity in ``now``.
        locks: Locks with the activities of their holders.
    """
    holders = {
        now.tid: now
        for lock in locks
        if (now := lock.holder_activity) is not None and now.doing is ActivityState.BLOCKED
    }
    if not holders:
        return threads
    return tuple([_apply_longest(thread, holders.get(thread.tid)) for thread in threads])


def _apply_longest(thread: Thread, as_holder: ThreadActivity | None) -> Thread:
    now = thread.now
    if (
        now is None
        or as_holder is None
        or (now.doing, now.call, now.what) != (as_holder.doing, as_holder.call, as_holder.what)
        or now.duration_s >= as_holder.duration_s
    ):
        return thread
    longest = replace(now, duration_s=as_holder.duration_s, is_lower_bound=as_holder.is_lower_bound)
    return replace(thread, now=longest)
