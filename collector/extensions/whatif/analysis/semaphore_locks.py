"""Semaphores that programs use as locks: those of Python are such ones.

The thread that took the only unit posts it. So each such semaphore becomes a mutex here, and what
its threads do in between becomes a hold. Woken threads try again in both cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from locktop.collector.extensions.whatif.analysis.evidence import Evidence
from locktop.collector.model import Kind, SignalRecord, WaitRecord

#: Fewer posts say too little. So many of them may be others' units, or overlap with the next take.
_MIN_POSTS, _MAX_OTHERS = 8, 0.02
#: The clock is read after a take and before a post, so they overlap by less than this, nanoseconds.
_OVERLAP_NS = 2000


class _Hold(NamedTuple):
    got_ns: int
    end_ns: int
    record: WaitRecord


def convert_semaphores(evidence: Evidence) -> Evidence:
    """Return the evidence with holds of mutexes in place of the units of such semaphores."""
    takes = _group_by_lock(
        record for record in evidence.records if record.kind is Kind.SEM and not record.timed_out
    )
    posts: dict[int, list[SignalRecord]] = {}
    for post in evidence.signals:
        if post.kind is Kind.SEM:
            posts.setdefault(post.lock, []).append(post)
    holds_of: dict[int, list[WaitRecord]] = {}
    for lock, of_lock in posts.items():
        holds = _holds(takes.get(lock, ()), of_lock)
        if holds is not None:
            holds_of[lock] = holds
    if not holds_of:
        return evidence
    records = [record for record in evidence.records if record.lock not in holds_of]
    records += [hold for of_lock in holds_of.values() for hold in of_lock]
    return replace(
        evidence,
        records=sorted(records, key=_began),
        open_waits=[
            replace(record, kind=Kind.MUTEX) if record.lock in holds_of else record
            for record in evidence.open_waits
        ],
        signals=[signal for signal in evidence.signals if signal.lock not in holds_of],
    )


def _began(record: WaitRecord) -> int:
    return record.began_ns


def _group_by_lock(records: Iterable[WaitRecord]) -> Mapping[int, list[WaitRecord]]:
    by_lock: dict[int, list[WaitRecord]] = {}
    for record in records:
        by_lock.setdefault(record.lock, []).append(record)
    return by_lock


def _holds(takes: Iterable[WaitRecord], posts: Iterable[SignalRecord]) -> list[WaitRecord] | None:
    """Return the holds of a semaphore, as records of a mutex; None: it is no lock."""
    events: list[tuple[int, int, int, WaitRecord | None]] = [
        (take.got_ns, number, take.tid, take) for number, take in enumerate(takes)
    ]
    events += [(post.time_ns, -1, post.tid, None) for post in posts]
    events.sort(key=lambda event: event[:3])
    taken: dict[int, WaitRecord] = {}  # by thread
    holds: list[_Hold] = []
    count = of_others = 0
    for time_ns, _, tid, record in events:
        if record is not None:
            taken[tid] = record
            continue
        count += 1
        own = taken.pop(tid, None)
        if own is None:
            of_others += 1  # or the unit was taken before the span
        else:
            holds.append(_Hold(own.got_ns, time_ns, own))
    if count < _MIN_POSTS or of_others > max(1, count * _MAX_OTHERS):
        return None
    if _overlapping(holds) > count * _MAX_OTHERS:
        return None
    return [
        replace(hold.record, kind=Kind.MUTEX, hold_ns=max(1, hold.end_ns - hold.got_ns))
        for hold in holds
    ]


def _overlapping(holds: Iterable[_Hold]) -> int:
    """Return how many holds begin in another one: there are several units."""
    count = last_end_ns = 0
    for hold in sorted(holds, key=lambda record: record.got_ns):
        count += hold.got_ns + _OVERLAP_NS < last_end_ns
        last_end_ns = max(last_end_ns, hold.end_ns)
    return count
