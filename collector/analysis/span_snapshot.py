"""The waits of a span of time as a snapshot: call trees and exports take it as any other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from locktop.collector.model import Blame, Frame, Kind, Lock, Snapshot, TimedWait, WaitStack


class _LockSum(Struct):
    """Nanoseconds and counts of one lock."""

    kind: Kind
    stacks: dict[tuple[int, bool], list[int]] = field(default_factory=dict)  # ns, count
    holders: dict[int, int] = field(default_factory=dict)
    longest_ns: int = 0


def span_snapshot(
    snapshot: Snapshot,
    waits: Iterable[TimedWait],
    from_ns: int,
    to_ns: int,
    stacks: Mapping[int, tuple[Frame, ...]] | None = None,
    locks: Collection[int] = (),
) -> Snapshot:
    """Return a snapshot whose locks have the waits of one span alone.

    A wait counts with its part in the span. Figures that waits do not show are None.

    Args:
        snapshot: has the names of the locks, the threads and the functions.
        waits: all waits that touch the span.
        from_ns: the begin of the span, nanoseconds since 1970.
        to_ns: its end.
        stacks: the frames of further stacks.
        locks: the only locks that count; none: all locks.
    """
    sums: dict[int, _LockSum] = {}
    for wait in waits:
        record = wait.record
        part = min(to_ns, record.got_ns) - max(from_ns, record.began_ns)
        if part <= 0 or (locks and record.lock not in locks):
            continue
        lock_sum = sums.setdefault(record.lock, _LockSum(record.kind))
        entry = lock_sum.stacks.setdefault((record.stack, wait.idle), [0, 0])
        entry[0] += part
        entry[1] += 1
        if not wait.idle:
            lock_sum.holders[record.holder] = lock_sum.holders.get(record.holder, 0) + part
        lock_sum.longest_ns = max(lock_sum.longest_ns, part)
    lock_by_id = {listed.id: listed for listed in snapshot.locks}
    summed = [_lock(lock_by_id.get(id_), id_, lock_sum) for id_, lock_sum in sums.items()]
    summed.sort(key=lambda lock: (lock.idle, -lock.counted_wait_s, lock.id))
    return replace(
        snapshot,
        duration_s=(to_ns - from_ns) / 1e9,
        interval_s=(to_ns - from_ns) / 1e9,
        locks=tuple(summed),
        stacks={**(stacks or {}), **snapshot.stacks},
        deadlocks=(),
        events=(),
    )


def _lock(known_lock: Lock | None, id_: int, lock_sum: _LockSum) -> Lock:
    entries = sorted(lock_sum.stacks.items(), key=lambda item: -item[1][0])
    idle_ns = sum(ns for (_, idle), (ns, _) in entries if idle)
    count = sum(number for _, (_, number) in entries)
    whole = sum(ns for _, (ns, _) in entries)
    blame = sorted(lock_sum.holders.items(), key=lambda item: -item[1])
    python = {
        entry.stack: entry.python
        for entry in (known_lock.wait_stacks if known_lock is not None else ())
    }
    return Lock(
        id=id_,
        address=known_lock.address if known_lock is not None else 0,
        kind=lock_sum.kind,
        name=known_lock.name if known_lock is not None else f"lock {id_}",
        contended=count,
        wait_s=whole / 1e9,
        wait_max_s=lock_sum.longest_ns / 1e9,
        hold_max_s=None,
        holders=(),
        waiters=(),
        wait_stacks=tuple(
            WaitStack(
                stack=stack,
                count=number,
                wait_s=ns / 1e9,
                idle=idle,
                python=python.get(stack, ()),
            )
            for (stack, idle), (ns, number) in entries
        ),
        blame=tuple(Blame(tid=tid, site=0, wait_s=ns / 1e9) for tid, ns in blame),
        idle=idle_ns == whole,
        idle_s=idle_ns / 1e9,
        type=known_lock.type if known_lock is not None else "",
    )
