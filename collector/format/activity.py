"""What a thread does now, in words."""

from __future__ import annotations

from locktop.collector.format.units import lasting
from locktop.collector.model import ActivityState, Thread, ThreadActivity, ThreadState

_PLAIN = {
    ActivityState.RUNNING: "running",
    ActivityState.STOPPED: "stopped",
    ActivityState.ENDED: "ended, and it never gave it back",
}


def state(thread: Thread) -> str:
    """Return what a living thread does, in one word. Others may wait for who has a lock, so that is
    not called idle, whatever it does."""
    if thread.state is ThreadState.IDLE and thread.holds and thread.waiting_for is None:
        return "asleep"
    return thread.state.value


def doing(now: ThreadActivity | None, tid: int) -> str:
    """Return what the thread that holds a lock does, to stand after "now": "in write(7 ->
    /var/lib/x/wal) for 1.3 s"; "" where ``now`` is another one's, and where it waits, of which more
    is said elsewhere."""
    if now is None or now.tid != tid:
        return ""
    if now.doing is ActivityState.RUNNING and now.cpu is not None:
        return f"running ({now.cpu:.0%} of a CPU)"
    if now.doing is not ActivityState.BLOCKED:
        return _PLAIN.get(now.doing, "")
    # What one look saw may have begun at any time before.
    since = f" for {lasting(now.duration_s, now.is_lower_bound)}" if now.duration_s else ""
    return f"{asleep_in(now)}{since}"


def asleep_in(now: ThreadActivity) -> str:
    """Return where a thread sleeps: "in write(7 -> /var/lib/x/wal)"."""
    called = now.what or now.call
    return f"in {called}" if called else "asleep in the kernel"
