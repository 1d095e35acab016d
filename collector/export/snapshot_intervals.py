"""Intervals: the growth of the figures of threads and locks between two scans of a process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from locktop.collector.model import Lock, Thread, WaitStack

#: Counters of a lock that an interval has; each counter only grows.
_LOCK_COUNTERS = (
    "acquisitions", "contended", "trylock_failed", "signals", "hold_timed", "wait_s", "hold_s",
)  # fmt: skip


def _grown(before: float, now: float) -> float:
    """A thread or lock with the id of a dead one begins anew, so its figures may be smaller."""
    return max(now - before, 0)


def thread_interval(thread: Thread, before: Thread | None) -> dict[str, object]:
    """Return what was added to a thread's figures since ``before``."""
    wait_s = before.wait_s if before else {}
    return {
        "wait_s": {kind: _grown(wait_s.get(kind, 0.0), now) for kind, now in thread.wait_s.items()},
        "cpu_s": _grown(before.cpu_s if before else 0.0, thread.cpu_s),
        "acquisitions": _grown(before.acquisitions if before else 0, thread.acquisitions),
        "contended": _grown(before.contended if before else 0, thread.contended),
    }


def lock_interval(lock: Lock, before: Lock | None) -> dict[str, float]:
    """Return what was added to a lock's figures since ``before``."""
    grown = {
        name: _grown(getattr(before, name) if before else 0, getattr(lock, name))
        for name in _LOCK_COUNTERS
    }
    return grown | {"idle_s": _idle_interval(lock, before, grown["wait_s"])}


def class_interval(locks: Iterable[Lock], before: Mapping[int, Lock]) -> dict[str, float]:
    """Return the sums of what was added to each of ``locks`` since ``before``, by id."""
    parts = [lock_interval(lock, before.get(lock.id)) for lock in locks]
    return {name: sum(part[name] for part in parts) for name in parts[0]}


def _idle_interval(lock: Lock, before: Lock | None, wait_s: float) -> float:
    """Return the seconds of ``wait_s`` in idle waits. The later scan decides which stacks are idle,
    because it knows more names."""
    if lock.idle_s in (0.0, lock.wait_s):
        return wait_s if lock.idle_s else 0.0
    parts = zip(lock.wait_stacks, stack_intervals(lock, before), strict=True)
    return min(wait_s, sum(part_s for entry, (_, part_s) in parts if entry.idle))


def stack_intervals(lock: Lock, before: Lock | None) -> list[tuple[int, float]]:
    """Return for each of ``lock.wait_stacks`` the added count and the added seconds."""
    earlier = {entry.stack: entry for entry in before.wait_stacks} if before else {}
    none = WaitStack(0, 0, 0.0)
    return [
        (
            max(entry.count - earlier.get(entry.stack, none).count, 0),
            _grown(earlier.get(entry.stack, none).wait_s, entry.wait_s),
        )
        for entry in lock.wait_stacks
    ]


def blame_intervals(lock: Lock, before: Lock | None) -> list[float]:
    """Return for each of ``lock.blame`` the added seconds."""
    earlier = {one.holder: one.wait_s for one in before.blame} if before else {}
    return [_grown(earlier.get(one.holder, 0.0), one.wait_s) for one in lock.blame]
