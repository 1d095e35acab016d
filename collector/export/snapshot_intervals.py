"""Intervals: the growth of the figures of threads and locks between two scans of a process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from locktop.collector.analysis.figures_since import histogram_since
from locktop.collector.export.snapshot_locks import LockInterval
from locktop.collector.export.snapshot_threads import ThreadInterval
from locktop.collector.model import Histogram, Lock, Thread, WaitStack
from locktop.collector.model.figures import Figure, longest, total
from locktop.collector.model.histograms import merged, percentile_s


def _grown(before: Figure, now: Figure) -> Figure:
    """A thread or lock with the id of a dead one begins anew, so its figures may be smaller."""
    return max(now - before, 0)


def _grown_if_measured(before: Figure | None, now: Figure | None) -> Figure | None:
    return _grown(before, now) if before is not None and now is not None else None


def thread_interval(thread: Thread, before: Thread | None) -> ThreadInterval:
    """Return what was added to a thread's figures since ``before``."""
    wait_s = before.wait_s if before else {}
    waits = histogram_since(thread.wait_histogram, before.wait_histogram if before else None)
    return ThreadInterval(
        wait_s={kind: _grown(wait_s.get(kind, 0.0), now) for kind, now in thread.wait_s.items()},
        cpu_s=_grown(before.cpu_s if before else 0.0, thread.cpu_s),
        acquisitions=_grown_if_measured(before.acquisitions if before else 0, thread.acquisitions),
        contended=_grown_if_measured(before.contended if before else 0, thread.contended),
        wait_p50_s=percentile_s(waits, 50, None),
        wait_p99_s=percentile_s(waits, 99, None),
    )


def lock_interval(lock: Lock, before: Lock | None) -> LockInterval:
    """Return what was added to a lock's figures since ``before``."""
    wait_s = _grown(before.wait_s if before else 0.0, lock.wait_s)
    waits, holds = _added(lock, before)
    return LockInterval(
        acquisitions=_grown_if_measured(before.acquisitions if before else 0, lock.acquisitions),
        contended=_grown(before.contended if before else 0, lock.contended),
        trylock_failed=_grown_if_measured(
            before.trylock_failed if before else 0, lock.trylock_failed
        ),
        signals=_grown_if_measured(before.signals if before else 0, lock.signals),
        hold_timed=_grown(before.hold_timed if before else 0, lock.hold_timed),
        wait_s=wait_s,
        hold_s=_grown_if_measured(before.hold_s if before else 0.0, lock.hold_s),
        idle_s=_idle_interval(lock, before, wait_s),
        **_percentiles(waits, lock.wait_max_s, holds, lock.hold_max_s),
    )


def _added(lock: Lock, before: Lock | None) -> tuple[Histogram | None, Histogram | None]:
    """Return the waits and the holds since ``before``."""
    if before is None:
        return lock.wait_histogram, lock.hold_histogram
    return (
        histogram_since(lock.wait_histogram, before.wait_histogram),
        histogram_since(lock.hold_histogram, before.hold_histogram),
    )


def _percentiles(
    waits: Histogram | None, wait_max_s: float, holds: Histogram | None, hold_max_s: float | None
) -> dict[str, float | None]:
    return {
        "wait_p50_s": percentile_s(waits, 50, wait_max_s),
        "wait_p99_s": percentile_s(waits, 99, wait_max_s),
        "hold_p50_s": percentile_s(holds, 50, hold_max_s),
        "hold_p99_s": percentile_s(holds, 99, hold_max_s),
    }


def class_interval(locks: Sequence[Lock], before: Mapping[int, Lock]) -> LockInterval:
    """Return the sums of what was added to each of ``locks`` since ``before``, by id."""
    parts = [lock_interval(lock, before.get(lock.id)) for lock in locks]
    added = [_added(lock, before.get(lock.id)) for lock in locks]
    return LockInterval(
        acquisitions=total(part.acquisitions for part in parts),
        contended=sum(part.contended for part in parts),
        trylock_failed=total(part.trylock_failed for part in parts),
        signals=total(part.signals for part in parts),
        hold_timed=sum(part.hold_timed for part in parts),
        wait_s=sum(part.wait_s for part in parts),
        hold_s=total(part.hold_s for part in parts),
        idle_s=sum(part.idle_s for part in parts),
        **_percentiles(
            merged(waits for waits, _ in added),
            max((lock.wait_max_s for lock in locks), default=0.0),
            merged(holds for _, holds in added),
            longest(lock.hold_max_s for lock in locks),
        ),
    )


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
    none = WaitStack(stack=0, count=0, wait_s=0.0)
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
