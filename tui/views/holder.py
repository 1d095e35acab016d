"""What the holder of a lock does now, in a few words."""

from __future__ import annotations

from locktop.collector.format import activity
from locktop.collector.model import ActivityState, Lock
from locktop.tui.views.shorten import place_in
from locktop.tui.views.snapshot_index import SnapshotIndex
from locktop.tui.views.styled_line import Run

_PLACE_WIDTH = 24


def shortly(picture: SnapshotIndex, lock: Lock) -> Run:
    """Say ``in fsync(7 -> /var/lib/x/wal) for 1.3 s``, ``runs parse:120``, ``waits for g_lock``; ""
    where nobody waits for the lock, or it is not known."""
    now = lock.holder_activity
    if now is None:
        return "", "dim"
    wait = picture.threads[now.tid].waiting_for if now.tid in picture.threads else None
    if now.doing is ActivityState.WAITING and wait is not None:
        return f"waits for {picture.lock_name(wait.lock)}", "waiting"
    stack = picture.snapshot.stacks.get(now.stack)
    if now.doing is ActivityState.RUNNING and stack and not now.stack_age_s:
        # Of a copy or a hash on behalf of the program the place in the program says more.
        own = next((frame for frame in stack if frame.line is not None), stack[0])
        return f"runs {place_in(own, _PLACE_WIDTH)}", "running"
    return activity.doing(now, now.tid), "text"
