"""Intervals: the growth of the figures of threads and locks between two scans of a process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from locktop.collector.analysis.figures_since import histogram_since
from locktop.collector.model import Histogram, Lock, Thread, WaitStack
from locktop.collector.model.figures import grown, longest
from locktop.collector.model.histograms import merge, percentile_s
from locktop.collector.model.lock_figures import growth, sums
from locktop.collector.render.documents.snapshot_locks import LockInterval
from locktop.collector.render.documents.snapshot_threads import ThreadInterval


def thread_interval(thread: Thread, before: Thread | None) -> ThreadInterval:
    """Return what was added to a thread's figures since ``before``."""
    wait_s = before.wait_s if before else {}
    waits = histogram_since(thread.wait_histogram, before.wait_histogram if before else None)
    return ThreadInterval(
        wait_s={kind: max(now - wait_s.get(kind, 0.0), 0.0) for kind, now in thread.wait_s.items()},
        cpu_s=max(thread.cpu_s - (before.cpu_s if before else 0.0), 0.0),
        acquisitions=grown(before.acquisitions if before else 0, thread.acquisitions),
        contended=grown(before.contended if before else 0, thread.contended),
        wait_p50_s=percentile_s(waits, 50, None),
        wait_p99_s=percentile_s(waits, 99, None),
    )


def lock_interval(lock: Lock, before: Lock | None) -> LockInterval:
    """Return what was added to a lock's figures since ``before``."""
    waits, holds = _added_histograms(lock, before)
    figures = growth(lock, before)
    figures["idle_s"] = _idle_interval(lock, before, figures["wait_s"])
    return LockInterval(**figures, **_percentiles(waits, lock.wait_max_s, holds, lock.hold_max_s))


def _added_histograms(lock: Lock, before: Lock | None) -> tuple[Histogram | None, Histogram | None]:
    """Return the waits and the holds since ``before``."""
    if before is None:
        return lock.wait_histogram, lock.hold_histogram
    return (
        histogram_since(lock.wait_histogram, before.wait_histogram),
        histogram_since(lock.hold_histogram, before.hold_histogram),
    )


def _percentiles(
    waits: Histogram | None, wait_max_s: float, holds: Histogram | None, hold_max_s: float | None
) -> dict[str, Any]:
    return {
        "wait_p50_s": percentile_s(waits, 50, wait_max_s),
        "wait_p99_s": percentile_s(waits, 99, wait_max_s),
        "hold_p50_s": percentile_s(holds, 50, hold_max_s),
        "hold_p99_s": percentile_s(holds, 99, hold_max_s),
    }


def class_interval(locks: Sequence[Lock], before: Mapping[int, Lock]) -> LockInterval:
    """Return the sums of what was added to each of ``locks`` since ``before``, by id."""
    parts = [lock_interval(lock, before.get(lock.id)) for lock in locks]
    added = [_added_histograms(lock, before.get(lock.id)) for lock in locks]
    return LockInterval(
        **sums(parts),
        **_percentiles(
            merge(waits for waits, _ in added),
            max((lock.wait_max_s for lock in locks), default=0.0),
            merge(holds for _, holds in added),
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
            max(entry.wait_s - earlier.get(entry.stack, none).wait_s, 0.0),
        )
        for entry in lock.wait_stacks
    ]


def blame_intervals(lock: Lock, before: Lock | None) -> list[float]:
    """Return for each of ``lock.blame`` the added seconds."""
    earlier = {part.holder: part.wait_s for part in before.blame} if before else {}
    return [max(part.wait_s - earlier.get(part.holder, 0.0), 0.0) for part in lock.blame]
