"""The waits of a time line: exact ones from ring records, others from the scans that showed them.

A wait is in both if a scan met the wait and its record came later. Then the record counts alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from locktop.collector.model import (
    CONTENTION_KINDS,
    LaneState,
    ScanSample,
    Snapshot,
    Thread,
    ThreadSample,
    ThreadState,
    TimedWait,
    Wait,
    WaitRecord,
)

#: The time of a scan is known less exactly than the times of records: a scan takes some time.
TOLERANCE_NS = 100_000_000

_STATES = {
    ThreadState.RUNNING: LaneState.RUNNING,
    ThreadState.RUNNABLE: LaneState.RUNNING,
}


def sample(snapshot: Snapshot, time_ns: int) -> ScanSample:
    """Return what a time line needs of a snapshot.

    Args:
        snapshot: the scan.
        time_ns: when it was taken.
    """
    return ScanSample(
        time_ns=time_ns,
        is_sampled=snapshot.is_sampled,
        lost_records=snapshot.lost_events,
        threads={
            thread.tid: _thread(thread)
            for thread in snapshot.threads
            # The snapshot of a killed process keeps the waits of its threads.
            if thread.alive or thread.waiting_for is not None
        },
        is_first=snapshot.interval_s == 0.0,
        activities={
            lock.id: lock.holder_activity
            for lock in snapshot.locks
            if lock.holder_activity is not None
        },
        readers={lock.id: lock.readers for lock in snapshot.locks if lock.readers},
        lock_waits={lock.id: (lock.wait_s, lock.idle_s) for lock in snapshot.locks if lock.wait_s},
    )


def _thread(thread: Thread) -> ThreadSample:
    return ThreadSample(
        name=thread.name,
        state=_beside_waits(thread),
        wait=thread.waiting_for,
        holds=thread.holds,
        contended_s=sum([s for kind, s in thread.wait_s.items() if kind in CONTENTION_KINDS]),
        idle_s=sum([s for kind, s in thread.wait_s.items() if kind not in CONTENTION_KINDS]),
    )


def _beside_waits(thread: Thread) -> LaneState:
    """Return what the thread does when it does not wait.

    Of a thread that waits at the moment of the scan, the last interval tells.
    """
    time = thread.time
    if thread.waiting_for is None or time is None:
        return _STATES.get(thread.state, LaneState.SLEEPING)
    runs, sleeps = time.cpu + time.runnable, time.disk + time.other
    return LaneState.RUNNING if runs > sleeps else LaneState.SLEEPING


class _ScannedWait(Struct):
    """A wait while scans are read."""

    tid: int
    wait: Wait  # as in the last scan that showed the wait
    began_ns: int
    end_ns: int
    earliest_ns: int = 0  # the end of the wait before
    is_open: bool = False


def waits_in_scans(samples: Sequence[ScanSample]) -> list[TimedWait]:
    """Return the waits that scans showed, in order of their begin.

    Two scans in a row that show the same wait (by its number and its lock) show one wait. A wait of
    a sampled process is an estimate. Its begin is the middle between the scan before and the
    first scan that shows the wait. Its end is the middle between the last one and the next.
    """
    waits: list[_ScannedWait] = []
    current: dict[int, _ScannedWait] = {}
    for number, sample in enumerate(samples):
        half_ns = (sample.time_ns - samples[number - 1].time_ns) // 2 if number else 0
        before, current = current, {}
        for tid, thread in sample.threads.items():
            wait, last = thread.wait, before.get(tid)
            same = last is not None and wait is not None and _is_same(last.wait, wait)
            if last is not None and not same and sample.is_sampled:
                last.end_ns += half_ns
            if wait is None:
                continue
            if same and last is not None:
                last.wait, last.end_ns = wait, sample.time_ns
                known_ns = sample.time_ns - _nanoseconds(wait.duration_s)
                # The first scan of many threads knows the age of few waits.
                if known_ns < last.began_ns - TOLERANCE_NS:
                    last.began_ns = max(known_ns, last.earliest_ns)
                current[tid] = last
                continue
            began_ns = sample.time_ns - _nanoseconds(wait.duration_s)
            if sample.is_sampled:
                began_ns = min(began_ns, sample.time_ns - half_ns)
            earliest_ns = last.end_ns if last is not None else 0
            began_ns = max(began_ns, earliest_ns)
            current[tid] = _ScannedWait(tid, wait, began_ns, sample.time_ns, earliest_ns)
            waits.append(current[tid])
    for scanned in current.values():
        scanned.is_open = True
    return [_timed_wait(scanned) for scanned in sorted(waits, key=lambda scanned: scanned.began_ns)]


def _is_same(wait: Wait, other: Wait) -> bool:
    return wait.seq == other.seq and wait.lock == other.lock


def _nanoseconds(seconds: float) -> int:
    return max(0, round(seconds * 1e9))


def _timed_wait(scanned: _ScannedWait) -> TimedWait:
    wait = scanned.wait
    holder = wait.holder_seen or (wait.holders[0] if wait.holders else 0)
    record = WaitRecord(
        tid=scanned.tid,
        lock=wait.lock,
        kind=wait.kind,
        began_ns=scanned.began_ns,
        wait_ns=scanned.end_ns - scanned.began_ns,
        hold_ns=None,
        stack=wait.stack,
        holder=holder,
        site=wait.site,
        is_sampled=True,
    )
    return TimedWait(
        record=record,
        idle=wait.idle,
        is_open=scanned.is_open,
        is_lower_bound=wait.is_lower_bound,
    )


def join(records: Iterable[TimedWait], scanned: Iterable[TimedWait]) -> list[TimedWait]:
    """Return the waits of both, each once, in order of their begin.

    Args:
        records: waits from ring records, which may be holds without a wait.
        scanned: waits from scans. One that is also a record is left out.
    """
    waits = list(records)
    by_lock_of_thread: dict[tuple[int, int], list[WaitRecord]] = {}
    for timed_wait in waits:
        if timed_wait.record.wait_ns:
            by_lock_of_thread.setdefault(
                (timed_wait.record.tid, timed_wait.record.lock), []
            ).append(timed_wait.record)
    for timed_wait in scanned:
        exact = by_lock_of_thread.get((timed_wait.record.tid, timed_wait.record.lock), ())
        if not any(_is_recorded(timed_wait.record, record) for record in exact):
            waits.append(timed_wait)
    return sorted(waits, key=lambda timed_wait: timed_wait.record.began_ns)


def _is_recorded(scanned: WaitRecord, record: WaitRecord) -> bool:
    """Return whether ``record`` is the wait that scans showed, which lies in it then.

    A thread waits for a lock once at a time. The scans of a busy machine may show its wait later.
    """
    last_begin_ns = max(record.got_ns, record.began_ns + TOLERANCE_NS)
    return (
        record.began_ns - TOLERANCE_NS <= scanned.began_ns <= last_begin_ns
        and record.got_ns >= scanned.got_ns - TOLERANCE_NS
    )


def classify(records: Iterable[WaitRecord], snapshot: Snapshot) -> Iterator[TimedWait]:
    """Yield the records as waits in contention or for work, as the snapshot classifies them."""
    by_stack, by_lock = _verdicts(snapshot)
    for record in records:
        idle = by_stack.get((record.lock, record.stack))
        if idle is None:
            idle = record.kind not in CONTENTION_KINDS and by_lock.get(record.lock, True)
        yield TimedWait(record=record, idle=idle)


def _verdicts(snapshot: Snapshot) -> tuple[Mapping[tuple[int, int], bool], Mapping[int, bool]]:
    """Return by lock and stack, and by lock, whether waits are for work."""
    by_stack = {
        (lock.id, entry.stack): entry.idle for lock in snapshot.locks for entry in lock.wait_stacks
    }
    return by_stack, {lock.id: lock.idle for lock in snapshot.locks}
