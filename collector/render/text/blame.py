"""Sections of the text report: where threads waited, and because of which holders."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from locktop.collector.analysis import divided_waits, lock_classes
from locktop.collector.model import Blame, Lock, LockClass, WaitPart, WaitStack
from locktop.collector.render.documents import snapshot_intervals
from locktop.collector.render.text.context import ReportContext, Row
from locktop.collector.render.words import activity, python_shares, units
from locktop.collector.render.words import blame as blame_format
from locktop.collector.render.words.source_location import full_location

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
    divided = 0  # waits on which estimates rest
    rows = context.rows_with_waits()[:_MAX_LOCKS]
    min_s = max(map(context.contention_s, rows), default=0.0) * _MIN_SHARE
    for lock in (row for row in rows if context.contention_s(row) >= min_s):
        for part in _parts_of(context, lock)[:_MAX_STACKS]:
            if not headed:
                headed = True
                yield from ("", "WHERE THE WAITS WERE")
            whole = context.contention_s(lock)
            share = int(100 * min(part.wait_s / whole, 1.0)) if whole else 0
            about, waits = "about ", ""
            if part.count is not None:
                about, waits = "", f" in {units.counted(part.count, 'wait')}"
            yield (
                f"  {context.row_name(lock)}, {about}{share} % of its wait:"
                f" {units.duration(part.wait_s)}{waits}"
            )
            yield from context.stack(part.stack, "      ")
        divided += divided_waits.basis(context.members(lock))
        if headed:
            yield from _held_meanwhile(context, lock)
    if divided:
        yield f"  {python_shares.note(divided)}"


def _held_meanwhile(context: ReportContext, row: Row) -> Iterator[str]:
    """Yield the holders with most blame for the waits."""
    blamed = _blame_of(context, row)
    whole = sum(wait_s for _, wait_s in blamed)
    if sentence := blame_format.divided(blamed, row.kind, context.snapshot):
        yield f"    {context.row_name(row)}: {sentence}"
    for number, (blame, wait_s) in enumerate(blamed[:_MAX_BLAMED]):
        if number == 0:
            evidence = blame_format.evidence(row.kind)
            meanwhile = f"meanwhile, {evidence}," if evidence else "meanwhile"
            yield f"    {context.row_name(row)} was held {meanwhile} by"
        site = context.snapshot.sites.get(blame.site)
        yield (
            f"      {blame.holder_label or context.thread(blame.tid)},"
            f" {int(100 * wait_s / whole)} %: {units.duration(wait_s)}"
            + (f", {blame_format.site_verb(row.kind)} in {full_location(site)}" if site else "")
            + (f", while it waited for {context.lock(blame.through)}" if blame.through else "")
        )
    if blamed and context.before is None:  # a chain has no figures of an interval
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
        site, kind = context.snapshot.sites.get(root.site), context.kind(root.lock)
        yield (
            f"      {who.holder_label or context.thread(root.tid)},"
            f" {int(100 * root.wait_s / row.wait_s)} %: {units.duration(root.wait_s)},"
            f" with {context.lock(root.lock)}"
            + (f", {blame_format.site_verb(kind)} in {full_location(site)}" if site else "")
        )


def _blame_of(context: ReportContext, row: Row) -> list[tuple[Blame, float]]:
    """Return the blame with its seconds, most first."""
    if context.before is None:
        pairs = [(entry, entry.wait_s) for entry in lock_classes.blame(context.members(row))]
    else:
        sums: dict[Blame, float] = {}
        for lock in context.members(row):
            grown = snapshot_intervals.blame_intervals(lock, context.before.get(lock.id))
            for entry, wait_s in zip(lock.blame, grown, strict=True):
                who = replace(entry, wait_s=0.0)
                sums[who] = sums.get(who, 0.0) + wait_s
        pairs = list(sums.items())
    return sorted(((entry, s) for entry, s in pairs if s > 0), key=lambda entry: -entry[1])


def _parts_of(context: ReportContext, row: Row) -> list[WaitPart]:
    """Return the stacks of a row's waits that ended, most wait first."""
    locks = [replace(lock, wait_stacks=_stacks_of(context, lock)) for lock in context.members(row)]
    entries = [entry for entry in lock_classes.wait_stacks(locks) if entry.count]
    parts = [part for entry in entries for part in divided_waits.parts(entry)]
    return sorted(parts, key=lambda part: -part.wait_s)


def _stacks_of(context: ReportContext, lock: Lock) -> tuple[WaitStack, ...]:
    """Return the contended stacks of a lock, with the figures of the interval if there is one."""
    stacks = [entry for entry in lock.wait_stacks if not entry.idle]
    if context.before is None:
        return tuple(stacks)
    changed = snapshot_intervals.stack_intervals(lock, context.before.get(lock.id))
    return tuple(
        replace(entry, count=count, wait_s=wait_s)
        for entry, (count, wait_s) in zip(lock.wait_stacks, changed, strict=True)
        if not entry.idle
    )


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
