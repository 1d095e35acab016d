"""The figures of a process since an earlier scan of it: a session, or a span of a recording."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace

from locktop.collector.analysis.idle.classifier import most_wait_first
from locktop.collector.model import (
    Blame,
    Histogram,
    Kind,
    Lock,
    PythonShare,
    Snapshot,
    Thread,
    WaitStack,
)
from locktop.collector.model.figures import Figure, grown
from locktop.collector.model.lock_figures import growth

#: Each scan measures the rate of the clock anew, with at most this error.
_RATE_ERROR = 1e-4


def since(snapshot: Snapshot, baseline: Snapshot) -> Snapshot:
    """Return ``snapshot`` with the counters that were added after ``baseline``.

    States, waits that go on and rates stay. A lock or thread that is not in ``baseline`` keeps
    all of its figures. So does a lock with smaller counters, and a thread with an id that was
    used again. The maxima of a lock cannot be split, so they are upper bounds.

    Args:
        snapshot: the later scan.
        baseline: an earlier scan of the same process, by the same source.
    """
    locks = {lock.id: lock for lock in baseline.locks}
    threads = {thread.tid: thread for thread in baseline.threads}
    changed_locks = [_lock(lock, locks.get(lock.id)) for lock in snapshot.locks]
    duration_s = max(snapshot.duration_s - baseline.duration_s, 0.0)
    return replace(
        snapshot,
        duration_s=duration_s,
        session_s=duration_s,
        lost_events=max(snapshot.lost_events - baseline.lost_events, 0),
        threads=tuple([_thread(thread, threads.get(thread.tid)) for thread in snapshot.threads]),
        locks=tuple(sorted(changed_locks, key=most_wait_first)),
    )


def is_same_program(snapshot: Snapshot, other: Snapshot) -> bool:
    """Return whether ids of locks and stacks mean the same in two snapshots of one process.

    A process may execute another program, or the same one again.
    """
    first, second = snapshot.process, other.process
    are_known = bool(first.counted_since and second.counted_since)
    return (first.pid, first.exe) == (second.pid, second.exe) and (
        not are_known or first.counted_since == second.counted_since
    )


def baseline_of(snapshot: Snapshot, earlier: Snapshot) -> Snapshot:
    """Return ``earlier``; a scan without figures if ``earlier`` shows a former program."""
    if is_same_program(snapshot, earlier):
        return earlier
    return replace(snapshot, duration_s=0.0, lost_events=0, threads=(), locks=(), sections={})


# ---- locks ----


def is_same_lock(lock: Lock, before: Lock | None) -> bool:
    """Return whether the counters of ``lock`` go on from those of ``before``."""
    return (
        before is not None
        and (lock.address, lock.kind) == (before.address, before.kind)
        and lock.generation >= before.generation
        and not _shrank(before.acquisitions, lock.acquisitions)
        and not _shrank(before.contended, lock.contended)
        and not _shrank(before.hold_timed, lock.hold_timed)
    )


def _lock(lock: Lock, before: Lock | None) -> Lock:
    if before is None or not is_same_lock(lock, before):
        return lock
    figures = growth(lock, before)
    wait_s, hold_s = figures["wait_s"], figures["hold_s"]
    wait_max_s, is_bound = lock.wait_max_s, False
    if not _is_longer(wait_max_s, before.wait_max_s):
        # A maximum that samples saw bounds no later wait, of which they saw a part.
        wait_max_s = 0.0 if lock.wait_max_is_lower_bound else min(wait_max_s, wait_s)
        is_bound = wait_max_s > 0.0
    hold_max_s = lock.hold_max_s
    if hold_s is not None and hold_max_s is not None and before.hold_max_s is not None:
        is_known = _is_longer(hold_max_s, before.hold_max_s)
        hold_max_s = hold_max_s if is_known else min(hold_max_s, hold_s)
    stacks = _stacks(lock.wait_stacks, before.wait_stacks)
    figures["idle_s"] = _idle_s(lock, wait_s, stacks)
    return replace(
        lock,
        **figures,
        wait_max_s=wait_max_s,
        wait_max_is_bound=is_bound,
        hold_max_s=hold_max_s,
        wait_stacks=stacks,
        blame=_blame(lock.blame, before.blame),
        wait_histogram=histogram_since(lock.wait_histogram, before.wait_histogram),
        hold_histogram=histogram_since(lock.hold_histogram, before.hold_histogram),
        wait_error_s=math.sqrt(max(lock.wait_error_s**2 - before.wait_error_s**2, 0.0)),
    )


def _is_longer(longest_s: float, before_s: float) -> bool:
    """Return whether a maximum has grown, and not just the measured rate of the clock."""
    return longest_s > before_s * (1 + _RATE_ERROR)


def _idle_s(lock: Lock, wait_s: float, stacks: Sequence[WaitStack]) -> float:
    """Return the seconds of ``wait_s`` in idle waits. The later scan decides which stacks are idle,
    because it knows more names."""
    if lock.idle_s in (0.0, lock.wait_s):
        return wait_s if lock.idle_s else 0.0
    return min(wait_s, sum(entry.wait_s for entry in stacks if entry.idle))


def _stacks(now: Sequence[WaitStack], before: Sequence[WaitStack]) -> tuple[WaitStack, ...]:
    earlier = {entry.stack: entry for entry in before}
    entries = []
    for entry in now:
        earlier_entry = earlier.get(entry.stack)
        if earlier_entry is not None:
            count, wait_s = entry.count - earlier_entry.count, entry.wait_s - earlier_entry.wait_s
            python = _samples(entry.python, earlier_entry.python)
            entry = replace(entry, count=max(count, 0), wait_s=max(wait_s, 0.0), python=python)
        if entry.count or entry.wait_s:
            entries.append(entry)
    return tuple(sorted(entries, key=lambda entry: -entry.wait_s))


def _samples(now: Sequence[PythonShare], before: Sequence[PythonShare]) -> tuple[PythonShare, ...]:
    shares_before = {share.stack: share for share in before}
    result = []
    for share in now:
        earlier = shares_before.get(share.stack)
        if earlier is not None:
            samples, waits = share.samples - earlier.samples, share.waits - earlier.waits
            share = replace(share, samples=max(samples, 0), waits=max(waits, 0))
        if share.samples:
            result.append(share)
    return tuple(sorted(result, key=lambda share: -share.samples))


def _blame(now: Sequence[Blame], before: Sequence[Blame]) -> tuple[Blame, ...]:
    if not now:
        return ()
    earlier = {charge.holder: charge.wait_s for charge in before}
    charges = []
    for charge in now:
        wait_s = charge.wait_s - earlier.get(charge.holder, 0.0)
        if wait_s > 0.0:
            charges.append(replace(charge, wait_s=wait_s))
    return tuple(sorted(charges, key=lambda charge: -charge.wait_s))


# ---- threads ----


def is_same_thread(thread: Thread, before: Thread | None) -> bool:
    """Return whether the counters of ``thread`` go on from those of ``before``.

    The kernel gives the id of a thread that ended to a new thread.
    """
    return (
        before is not None
        and (before.alive or not thread.alive)
        and before.pid == thread.pid
        and not _shrank(before.acquisitions, thread.acquisitions)
        and not _shrank(before.contended, thread.contended)
        and thread.cpu_s >= before.cpu_s
    )


def _thread(thread: Thread, before: Thread | None) -> Thread:
    if before is None or not is_same_thread(thread, before):
        return thread
    wait_s: dict[Kind, float] = {
        kind: max(now_s - before.wait_s.get(kind, 0.0), 0.0)
        for kind, now_s in thread.wait_s.items()
    }
    return replace(
        thread,
        wait_s=wait_s,
        cpu_s=thread.cpu_s - before.cpu_s,
        acquisitions=grown(before.acquisitions, thread.acquisitions),
        contended=grown(before.contended, thread.contended),
        wait_histogram=histogram_since(thread.wait_histogram, before.wait_histogram),
    )


def histogram_since(now: Histogram | None, before: Histogram | None) -> Histogram | None:
    """Return the lengths that were added to a histogram after ``before``."""
    return now.since(before) if now is not None else None


def _shrank(before: Figure | None, now: Figure | None) -> bool:
    return before is not None and now is not None and now < before
