"""Makes records of the waits and holds that go on at the end of a span, from a snapshot."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from locktop.collector.model import Held, Kind, Snapshot, Wait, WaitRecord

_NS = 1_000_000_000


class OpenRecords(NamedTuple):
    """The waits and holds of which a span does not show the end."""

    holds: list[WaitRecord]  # until the end of the span
    waits: list[WaitRecord]  # until just after it


def open_records(
    snapshot: Snapshot, at_ns: int, records: Iterable[WaitRecord], to_ns: int
) -> OpenRecords:
    """Return the waits and the timed holds that had begun before the end of a span.

    Args:
        snapshot: taken at the end of the span, or a moment later.
        at_ns: the time of the snapshot, nanoseconds since 1970, to a millisecond. So nothing begins
            before the thread's last record is over.
        records: of the span.
        to_ns: the end of the span, nanoseconds since 1970.
    """
    over_ns: dict[int, int] = {}  # the end of the last record, by thread
    released_ns: dict[tuple[int, int], int] = {}  # the last release, by thread and lock
    for record in records:
        over_ns[record.tid] = max(over_ns.get(record.tid, 0), record.end_ns)
        key = record.tid, record.lock
        released_ns[key] = max(released_ns.get(key, 0), record.end_ns)
    kinds = {lock.id: lock.kind for lock in snapshot.locks}
    open_ones = OpenRecords([], [])
    for thread in snapshot.threads:
        if over_ns.get(thread.tid, 0) >= to_ns:
            continue  # the record of what went on is there
        for held in thread.holds:
            kind = kinds.get(held.lock)
            if kind is not None and held.duration_s is not None and not held.is_lower_bound:
                least_ns = released_ns.get((thread.tid, held.lock), 0) + 1
                got_ns = max(at_ns - round(held.duration_s * _NS), least_ns)
                if got_ns < to_ns:
                    record = _begun(thread.tid, held, kind, got_ns)
                    open_ones.holds.append(replace(record, hold_ns=to_ns - got_ns))
        wait = thread.waiting_for
        if wait is not None:
            least_ns = over_ns.get(thread.tid, 0) + 1
            began_ns = max(at_ns - round(wait.duration_s * _NS), least_ns)
            if began_ns < to_ns:
                record = _begun(thread.tid, wait, wait.kind, began_ns)
                open_ones.waits.append(replace(record, wait_ns=to_ns + 1 - began_ns))
    return open_ones


def _begun(tid: int, what: Held | Wait, kind: Kind, began_ns: int) -> WaitRecord:
    """Return a record of a wait or a hold without a length."""
    return WaitRecord(
        tid=tid,
        lock=what.lock,
        kind=kind,
        began_ns=began_ns,
        wait_ns=0,
        hold_ns=None,
        stack=0,
        holder=0,
        site=what.site,
        is_shared=what.shared,
    )
