"""The activity of a thread as text."""

from __future__ import annotations

from collections.abc import Container

from locktop.collector.model import ActivityState, Held, Thread, ThreadActivity, ThreadState
from locktop.collector.render.words.units import lasting

_PLAIN = {
    ActivityState.RUNNING: "running",
    ActivityState.STOPPED: "stopped",
    ActivityState.ENDED: "ended, and never released the lock",
}


def state(thread: Thread, probable_holders: Container[int]) -> str:
    """Return the state of a living thread in one word.

    A thread that sleeps while it holds a lock is "asleep", not "idle": others may wait for it.

    Args:
        thread: the thread.
        probable_holders: tids of the threads that probably hold a lock which others wait for.
    """
    holds = thread.holds or thread.tid in probable_holders
    if thread.state is ThreadState.IDLE and holds and thread.waiting_for is None:
        return "asleep"
    return thread.state.value


def doing(now: ThreadActivity | None, tid: int) -> str:
    """Return what the holder of a lock does: "in write(7 -> /var/lib/x/wal) for 1.3 s".

    Args:
        now: the activity; None if it is not known.
        tid: the holder. The result is "" if ``now`` is the activity of another thread. The result
            is also "" if the holder waits for a lock, because other sentences say so.
    """
    if now is None or now.tid != tid:
        return ""
    if now.doing is ActivityState.RUNNING and now.cpu is not None:
        return f"running ({now.cpu:.0%} of a CPU)"
    if now.doing is not ActivityState.BLOCKED:
        return _PLAIN.get(now.doing, "")
    # An activity of a single scan may have begun at any earlier time.
    since = f" for {lasting(now.duration_s, now.is_lower_bound)}" if now.duration_s else ""
    return f"{asleep_in(now)}{since}"


def held_for(held: Held | None) -> str:
    """Return how long a lock has been held: " for 1.23 s", " for at least 1.23 s".

    Args:
        held: the hold; None or one of an unknown time gives "".
    """
    if held is None or held.duration_s is None:
        return ""
    return f" for {lasting(held.duration_s, held.is_lower_bound)}"


def asleep_in(now: ThreadActivity) -> str:
    """Return where a thread sleeps: "in write(7 -> /var/lib/x/wal)"."""
    called = now.what or now.call
    return f"in {called}" if called else "asleep in the kernel"
