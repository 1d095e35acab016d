"""Sections of the text report: where threads waited, and because of which holders."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from locktop.collector.analysis import lock_classes
from locktop.collector.export import snapshot_intervals
from locktop.collector.export.text.context import ReportContext, Row
from locktop.collector.format import activity, units
from locktop.collector.format import blame as blame_format
from locktop.collector.format.source_location import full_location
from locktop.collector.model import Blame, Lock, LockClass

#: Locks whose wait stacks the report has, and stacks of each lock.
_MAX_LOCKS, _MAX_STACKS = 5, 3
#: The least wait of a lock with stacks, as a part of the most wait of any lock.
_MIN_SHARE = 0.001
_MAX_BLAMED = 3
_MAX_HOLDERS = 5


def wait_locations(context: ReportContext) -> Iterator[str]:
    """Yield the stacks of the waits that ended. So the report names code even if no thread waits
    during the scan."""
    headed = False
    rows = context.rows_with_waits()[:_MAX_LOCKS]
    min_s = max(map(context.contention_s, rows), default=0.0) * _MIN_SHARE
    for lock in (row for row in rows if context.contention_s(row) >= min_s):
        for stack, count, wait_s in _stacks_of(context, lock)[:_MAX_STACKS]:
            if not headed:
                headed = True
                yield from ("", "WHERE THE WAITS WERE")
            whole = context.contention_s(lock)
            share = int(100 * min(wait_s / whole, 1.0)) if whole else 0
            yield (
                f"  {context.row_name(lock)}, {share} % of its wait:"
                f" {units.duration(wait_s)} in {units.counted(count, 'wait')}"
            )
            yield from context.stack(stack, "      ")
        if headed:
            yield from _held_meanwhile(context, lock)


def _held_meanwhile(context: ReportContext, row: Row) -> Iterator[str]:
    """Yield the holders with most blame for the waits."""
    blamed = _blame_of(context, row)
    whole = sum(wait_s for _, wait_s in blamed)
    if sentence := blame_format.divided(blamed, context.snapshot):
        yield f"    {context.row_name(row)}: {sentence}"
    for number, (blame, wait_s) in enumerate(blamed[:_MAX_BLAMED]):
        if number == 0:
            yield f"    {context.row_name(row)} was held meanwhile by"
        taken = context.snapshot.sites.get(blame.site)
        yield (
            f"      {blame.nameless or context.thread(blame.tid)},"
            f" {int(100 * wait_s / whole)} %: {units.duration(wait_s)}"
            + (f", taken in {full_location(taken)}" if taken else "")
            + (f", while it waited for {context.lock(blame.through)}" if blame.through else "")
        )
    if blamed:
        yield from _ends_of_chains(context, row)


def _ends_of_chains(context: ReportContext, row: Row) -> Iterator[str]:
    """Yield the ends of the chains, if a holder waited for a lock itself."""
    if isinstance(row, LockClass) or not context.blame_chains.is_chained(row):
        return
    roots = context.blame_chains.roots(row)
    in_part = " (followed in part: they are too many)" if row.id in context.blame_chains.cut else ""
    yield f"    and at the ends of the chains{in_part} by"
    for root in roots[:_MAX_BLAMED]:
        who = Blame(tid=root.tid, site=root.site, wait_s=root.wait_s)
        taken = context.snapshot.sites.get(root.site)
        yield (
            f"      {who.nameless or context.thread(root.tid)},"
            f" {int(100 * root.wait_s / row.wait_s)} %: {units.duration(root.wait_s)},"
            f" with {context.lock(root.lock)}"
            + (f", taken in {full_location(taken)}" if taken else "")
        )


def _blame_of(context: ReportContext, row: Row) -> list[tuple[Blame, float]]:
    """Return the blame with its seconds, most first."""
    if context.before is None:
        found = [(one, one.wait_s) for one in lock_classes.blame(context.members(row))]
    else:
        sums: dict[Blame, float] = {}
        for lock in context.members(row):
            grown = snapshot_intervals.blame_intervals(lock, context.before.get(lock.id))
            for one, wait_s in zip(lock.blame, grown, strict=True):
                who = replace(one, wait_s=0.0)
                sums[who] = sums.get(who, 0.0) + wait_s
        found = list(sums.items())
    return sorted(((one, s) for one, s in found if s > 0), key=lambda entry: -entry[1])


def _stacks_of(context: ReportContext, row: Row) -> list[tuple[int, int, float]]:
    """Return the id of each stack, its waits and their seconds; most wait first."""
    sums: dict[int, tuple[int, float]] = {}
    for lock in context.members(row):
        for stack, count, wait_s in _stacks_of_one(context, lock):
            counted, waited_s = sums.get(stack, (0, 0.0))
            sums[stack] = (counted + count, waited_s + wait_s)
    found = [(stack, *summed) for stack, summed in sums.items() if summed[0]]
    return sorted(found, key=lambda one: -one[2])


def _stacks_of_one(context: ReportContext, lock: Lock) -> list[tuple[int, int, float]]:
    if context.before is None:
        return [
            (entry.stack, entry.count, entry.wait_s) for entry in lock.wait_stacks if not entry.idle
        ]
    changed = snapshot_intervals.stack_intervals(lock, context.before.get(lock.id))
    return [
        (entry.stack, count, wait_s)
        for entry, (count, wait_s) in zip(lock.wait_stacks, changed, strict=True)
        if not entry.idle
    ]


def holder_activities(context: ReportContext) -> Iterator[str]:
    """Yield where in the code the holders sleep whose locks other threads wait for."""
    stacks = context.snapshot.stacks
    active = [
        (lock, now)
        for lock in context.snapshot.locks
        if (now := lock.holder_activity) is not None and now.stack in stacks
    ]
    if active:
        yield from ("", "HOLDERS NOW, of locks that other threads wait for")
    for lock, now in active[:_MAX_HOLDERS]:
        has = f"  {context.thread(now.tid)} holds {context.lock(lock.id)}"
        yield f"{has} and is {activity.doing(now, now.tid)}"
        if now.stack_age_s:
            yield f"      its stack, {units.duration(now.stack_age_s)} ago:"
        yield from context.stack(now.stack, "      ")
