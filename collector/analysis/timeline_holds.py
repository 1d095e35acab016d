"""The holders of a lock during a wait: from ring records exactly, else from scans.

The last thread to release a lock is often not the cause of a long wait. The cause is the thread
that had the lock for most of the wait.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

from locktop.collector.analysis.holder_sights import seen_during, sights_by_lock
from locktop.collector.analysis.timeline_waits import TOLERANCE_NS
from locktop.collector.model import (
    CONTENTION_KINDS,
    Held,
    HolderSight,
    HoldShare,
    Kind,
    LockHolds,
    ScanSample,
    ThreadActivity,
    TimedWait,
    TimeLine,
    WaitHolders,
    WaitRecord,
)
from locktop.collector.model.kinds import WOKEN_KINDS

#: The part of a wait before the time line that may lack a hold.
_UNREAD = 0.05
#: A futex may be a lock.
_HELD = CONTENTION_KINDS | WOKEN_KINDS
_NO_HOLDS = LockHolds(records=(), latest_end_ns=(), activities=())


def holds_by_lock(
    waits: Sequence[TimedWait], samples: Sequence[ScanSample]
) -> dict[int, LockHolds]:
    """Return the holds of each lock that a thread waited for in contention.

    Args:
        waits: all waits and holds that touch the span.
        samples: the scans of the span, the oldest first.
    """
    kinds = {wait.record.lock: wait.record.kind for wait in waits if _is_contention(wait)}
    records_by_lock: dict[int, list[WaitRecord]] = {lock: [] for lock in kinds}
    for wait in waits:
        if wait.record.hold_ns is not None and wait.record.lock in records_by_lock:
            records_by_lock[wait.record.lock].append(wait.record)
    for lock, scanned in _holds_in_scans(samples, kinds).items():
        records_by_lock[lock] += _unrecorded_holds(records_by_lock[lock], scanned)
    activities, sights = _activities(samples, kinds), sights_by_lock(samples, kinds.keys())
    times = tuple(sample.time_ns for sample in samples)
    return {
        lock: _lock_holds(records, activities.get(lock, ()), sights.get(lock, ()), times)
        for lock, records in records_by_lock.items()
    }


def _is_contention(wait: TimedWait) -> bool:
    record = wait.record
    return record.wait_ns > 0 and not wait.idle and record.kind in _HELD


def _lock_holds(
    records: list[WaitRecord],
    activities: Sequence[tuple[int, ThreadActivity]],
    sights: Sequence[HolderSight],
    scan_times: tuple[int, ...],
) -> LockHolds:
    records.sort(key=lambda record: record.got_ns)
    return LockHolds(
        records=tuple(records),
        latest_end_ns=tuple(itertools.accumulate((record.end_ns for record in records), max)),
        activities=tuple(activities),
        sights=tuple(sights),
        scan_times=scan_times,
    )


def _holds_in_scans(
    samples: Sequence[ScanSample], kinds: Mapping[int, Kind]
) -> dict[int, list[WaitRecord]]:
    """Return the holds of these locks in scans, each up to the moment of its scan.

    A sample of an unprepared process has no age of a hold. There the scan speaks for the time up to
    the middle between it and its neighbours. With the library, short holds have no
    age. Two scans do not show whether these are the same hold.
    """
    holds: dict[int, list[WaitRecord]] = {}
    for number, sample in enumerate(samples):
        begin_ns, end_ns = _middles(samples, number)
        for tid, thread in sample.threads.items():
            for held in thread.holds:
                kind = kinds.get(held.lock)
                if kind is None:
                    continue
                if held.duration_s is not None:
                    since_ns = sample.time_ns - round(held.duration_s * 1e9)
                    record = _scanned_hold(tid, held, kind, since_ns, sample.time_ns)
                elif sample.is_sampled:
                    record = _scanned_hold(tid, held, kind, begin_ns, end_ns)
                else:
                    continue
                holds.setdefault(held.lock, []).append(record)
    return holds


def _middles(samples: Sequence[ScanSample], number: int) -> tuple[int, int]:
    sample = samples[number]
    begins = number == 0 or sample.is_first
    ends = number == len(samples) - 1 or samples[number + 1].is_first
    return (
        sample.time_ns if begins else (samples[number - 1].time_ns + sample.time_ns) // 2,
        sample.time_ns if ends else (sample.time_ns + samples[number + 1].time_ns) // 2,
    )


def _scanned_hold(tid: int, held: Held, kind: Kind, from_ns: int, to_ns: int) -> WaitRecord:
    return WaitRecord(
        tid=tid,
        lock=held.lock,
        kind=kind,
        began_ns=from_ns,
        wait_ns=0,
        hold_ns=max(0, to_ns - from_ns),
        stack=0,
        holder=0,
        site=held.site,
        is_shared=held.shared,
        is_sampled=True,
    )


def _unrecorded_holds(
    records: Iterable[WaitRecord], scanned: Iterable[WaitRecord]
) -> Iterator[WaitRecord]:
    """Yield the scanned holds without those that a ring record has exactly."""
    exact: dict[int, list[WaitRecord]] = {}
    for record in records:
        exact.setdefault(record.tid, []).append(record)
    for own in exact.values():
        own.sort(key=lambda record: record.got_ns)
    for hold in scanned:
        own = exact.get(hold.tid, [])
        # The last record that may have begun before the scanned hold.
        index = bisect_left(own, hold.got_ns + TOLERANCE_NS, key=lambda record: record.got_ns)
        if not any(
            hold.got_ns <= record.end_ns and hold.end_ns <= record.end_ns + TOLERANCE_NS
            for record in own[max(0, index - 2) : index]
        ):
            yield hold


def _activities(
    samples: Iterable[ScanSample], kinds: Mapping[int, Kind]
) -> dict[int, list[tuple[int, ThreadActivity]]]:
    activities: dict[int, list[tuple[int, ThreadActivity]]] = {}
    for sample in samples:
        for lock, activity in sample.activities.items():
            if lock in kinds:
                activities.setdefault(lock, []).append((sample.time_ns, activity))
    return activities


def holders_during(timed_wait: TimedWait, line: TimeLine) -> WaitHolders | None:
    """Return who had the lock during a wait, None if no holder of that time is known.

    Holds that ended before the time line were not read. So a wait that began before counts
    from the begin of the time line on. If the known holds cover the part before, that counts too.
    """
    wait = timed_wait.record
    if not _is_contention(timed_wait):
        return None
    began_ns, to_ns = wait.began_ns, min(wait.got_ns, line.to_ns)
    holds = line.holds.get(wait.lock, _NO_HOLDS)
    holds_during = list(_overlapping(holds, began_ns, to_ns))
    unread_ns = line.from_ns - began_ns - _covered_ns(holds_during, began_ns, line.from_ns)
    from_ns = line.from_ns if unread_ns > _UNREAD * wait.wait_ns else began_ns
    by_thread: dict[int, list[WaitRecord]] = {}
    for record in holds_during:
        if record.end_ns > from_ns:
            by_thread.setdefault(record.tid, []).append(record)
    seen = seen_during(holds, max(from_ns, line.from_ns), to_ns)
    if not by_thread and seen is None:
        return None
    # Of a wait that goes on, the newest scan is the end of both.
    has_open_end = not timed_wait.is_open and not line.is_sampled
    shares = [
        _share(records, holds.activities, from_ns, to_ns, has_open_end)
        for records in by_thread.values()
    ]
    return WaitHolders(
        wait_ns=to_ns - from_ns,
        is_part=to_ns - from_ns < wait.wait_ns,
        shares=tuple(sorted(shares, key=lambda share: (-share.held_ns, share.tid))),
        unrecorded_ns=to_ns - from_ns - _covered_ns(holds_during, from_ns, to_ns),
        is_estimate=line.is_sampled,
        seen=seen,
    )


def _overlapping(holds: LockHolds, from_ns: int, to_ns: int) -> Iterator[WaitRecord]:
    """Yield the holds that have a part of a span, the last one first."""
    index = bisect_left(holds.records, to_ns, key=lambda record: record.got_ns)
    while index and holds.latest_end_ns[index - 1] > from_ns:
        index -= 1
        if holds.records[index].end_ns > from_ns:
            yield holds.records[index]


def _covered_ns(records: Iterable[WaitRecord], from_ns: int, to_ns: int) -> int:
    """Return the part of a span that the holds cover together."""
    covered, at_ns = 0, from_ns
    for record in sorted(records, key=lambda record: record.got_ns):
        begin_ns, end_ns = max(at_ns, record.got_ns), min(to_ns, record.end_ns)
        if end_ns > begin_ns:
            covered += end_ns - begin_ns
            at_ns = end_ns
    return covered


def _share(
    records: Sequence[WaitRecord],
    activities: Sequence[tuple[int, ThreadActivity]],
    from_ns: int,
    to_ns: int,
    has_open_end: bool,
) -> HoldShare:
    """Return the share of one thread.

    Args:
        records: its holds, which may be the same hold in several scans.
        activities: of the lock, in order of time.
        from_ns: the begin of the wait.
        to_ns: the end of the wait.
        has_open_end: whether a hold may go on behind the last scan that showed it.
    """
    longest = max(records, key=lambda record: min(to_ns, record.end_ns) - record.got_ns)
    last = max(records, key=lambda record: record.end_ns)
    return HoldShare(
        tid=longest.tid,
        held_ns=_covered_ns(records, from_ns, to_ns),
        site=longest.site,
        stack=0 if longest.is_release else longest.stack,
        is_shared=longest.is_shared,
        is_lower_bound=has_open_end and last.is_sampled and last.end_ns < to_ns,
        activity=_activity(longest, activities, from_ns, to_ns),
    )


def _activity(
    hold: WaitRecord,
    activities: Sequence[tuple[int, ThreadActivity]],
    from_ns: int,
    to_ns: int,
) -> ThreadActivity | None:
    """Return what the thread did in a hold, by the last scan in it and in the span."""
    begin_ns, end_ns = max(from_ns, hold.got_ns), min(to_ns, hold.end_ns)
    for time_ns, activity in reversed(activities):
        if begin_ns <= time_ns <= end_ns and activity.tid == hold.tid:
            return activity
    return None
