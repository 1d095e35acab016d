"""The threads that a deadlock holds up without being part of its circle."""

from __future__ import annotations

from collections import deque

from locktop.collector.model import CONTENTION_KINDS, Deadlock, Held, Snapshot, Thread


def stuck_behind(snapshot: Snapshot, deadlock: Deadlock) -> tuple[int, ...]:
    """Return the tids, the nearest to the circle first.

    Each waits, for good, for a lock that the circle or another of them holds. A wait that gives up
    by itself is not for good, and what one reader holds does not keep out another.
    """
    followers = _followers(snapshot)
    circle = [edge.tid for edge in deadlock.cycle]
    seen, line, found = set(circle), deque(circle), []
    while line:
        for tid in followers.get(line.popleft(), ()):
            if tid not in seen:
                seen.add(tid)
                found.append(tid)
                line.append(tid)
    return tuple(found)


def _followers(snapshot: Snapshot) -> dict[int, list[int]]:
    """By holder, those that wait for what it has."""
    threads = {thread.tid: thread for thread in snapshot.threads}
    followers: dict[int, list[int]] = {}
    for thread in snapshot.threads:
        wait = thread.waiting_for
        if wait is None or wait.timed or wait.kind not in CONTENTION_KINDS:
            continue
        for holder in wait.holders:
            held = _held(threads.get(holder), wait.lock)
            if not (wait.shared and held is not None and held.shared):
                followers.setdefault(holder, []).append(thread.tid)
    return followers


def _held(thread: Thread | None, lock: int) -> Held | None:
    holds = thread.holds if thread is not None else ()
    return next((held for held in holds if held.lock == lock), None)
