"""The three sentences at the top of a report: the verdict, the root, and what helps."""

from __future__ import annotations

from locktop.collector.analysis import deadlock_report
from locktop.collector.model import (
    ActivityState,
    BlockingRoot,
    BlockingTree,
    DeadlockReport,
    PatternName,
    RootKind,
)
from locktop.collector.render.text import blocking
from locktop.collector.render.text.context import ReportContext, Row
from locktop.collector.render.words import (
    blame,
    deadlock,
    hang,
    present_waits,
    units,
    verdict,
)
from locktop.collector.render.words.named_holder import Certainty
from locktop.collector.render.words.patterns import ADVICE
from locktop.collector.render.words.snapshot_index import LONG_WAIT_S
from locktop.collector.render.words.source_location import full_location

_MAX_MEMBERS = 3
_NO_PRESENT_WAIT = "No thread waits for a lock at this moment"
_NO_WAITS = f"{_NO_PRESENT_WAIT}, and none has waited"
_NO_SAMPLED_WAITS = f"{_NO_PRESENT_WAIT}, and no sample showed one that waited"
_NOTHING_TO_CHANGE = "Nothing needs to change"
_NOT_MEASURED = "The library is dormant, so waits and holders are not known"
_MEASURE = "Set another level, then look again"
_NO_PATTERN = "These waits follow no pattern that locktop knows; the stacks below show the code"


def happened(context: ReportContext, tree: BlockingTree) -> list[str]:
    """Return three sentences: the verdict; the root lock, its holder and since when; what helps.

    Args:
        context: the snapshot with its names.
        tree: its blocking tree.
    """
    snapshot = context.snapshot
    if hang.is_the_finding(snapshot) or not snapshot.deadlocks:
        cause, advice = _explain_waits(context, tree)
    else:
        report = deadlock_report.reports(snapshot)[0]
        cause, advice = _circle(report), next(deadlock.avoiding(report))
    return [_sentence(text) for text in (verdict.line(snapshot), cause, advice)]


def _sentence(text: str) -> str:
    # The first word may be the name of a thread, so it stays as it is.
    return f"{text.rstrip('. ')}."


def _circle(report: DeadlockReport) -> str:
    """Return the threads of a deadlock with their locks, source locations and times."""
    parts = []
    for member in report.circle[:_MAX_MEMBERS]:
        where = f", in {full_location(member.at)}" if member.at is not None else ""
        lasts = units.lasting(member.duration_s, member.is_lower_bound)
        whose = deadlock.whose(report, member)
        parts.append(
            f"{deadlock.thread(report, member.tid)} waits for"
            f" {deadlock.waits_for(report, member)}{' ' * bool(whose)}{whose} for {lasts}{where}"
        )
    if left := len(report.circle) - len(parts):
        parts.append(f"{units.counted(left, 'thread')} more")
    since = f" (since {report.since})" if report.since else ""
    return "; ".join(parts) + since


def _explain_waits(context: ReportContext, tree: BlockingTree) -> tuple[str, str]:
    snapshot = context.snapshot
    if verdict.long_hang(snapshot) is not None:
        return hang.whom(snapshot), list(hang.lines(snapshot))[-1]
    if context.index.dormant:
        return _NOT_MEASURED, _MEASURE
    advice = _NO_PATTERN
    if tree.roots and tree.roots[0].behind.waited_s >= LONG_WAIT_S:
        root = tree.roots[0]
        cause, locks = _root(context, root), set(root.locks)
        advice = _sleep_advice(context, root.lock)
    else:
        row = next(iter(context.rows_with_waits()), None)
        if row is None or not context.contention_s(row):
            return _NO_SAMPLED_WAITS if snapshot.is_sampled else _NO_WAITS, _NOTHING_TO_CHANGE
        cause, locks = _most_waited(context, row, tree), {lock.id for lock in context.members(row)}
    # A pattern of other locks would not help with these waits; one without a lock is about all.
    patterns = (pattern for pattern in snapshot.patterns if pattern.lock in {0, *locks})
    first = max(patterns, key=lambda pattern: pattern.lock != 0, default=None)
    return cause, first.advice if first is not None else advice


def _sleep_advice(context: ReportContext, lock_id: int) -> str:
    """Return the advice of a long hold, if the holder of a lock sleeps for long."""
    lock = context.locks.get(lock_id)
    named = context.index.holder_of(lock) if lock is not None else None
    now = named.now if named is not None and named.certainty is not Certainty.LIKELY else None
    if now is None or now.doing is not ActivityState.BLOCKED or now.duration_s < LONG_WAIT_S:
        return _NO_PATTERN
    return ADVICE[PatternName.LONG_HOLD]


def _root(context: ReportContext, root: BlockingRoot) -> str:
    """Return the sentence of `locktop check` about the root, and how many threads it keeps."""
    lock = context.index.locks.get(root.lock)
    waiters = context.index.waiters_of(root.lock)
    if lock is None or root.kind is RootKind.CYCLE:
        return blocking.cause(context, root)
    behind = root.behind.threads
    more = f"; {behind} threads wait because of it" if behind > len(waiters) else ""
    return present_waits.sentence(context.index, lock, waiters) + more


def _most_waited(context: ReportContext, row: Row, tree: BlockingTree) -> str:
    """Return which lock was waited for most, where nothing waits for long at the moment."""
    at_present = "The present waits are short" if tree.roots else "No thread waits at this moment"
    span = "since the process started"
    if context.snapshot.is_sampled:
        span = "since locktop began to sample"
    if context.before is not None:
        span = "in this span"
    waited = units.duration(context.contention_s(row))
    return (
        f"{at_present}; threads waited most for {context.row_name(row)}: {waited}"
        f" {span}{_taken_in(context, row)}"
    )


def _taken_in(context: ReportContext, row: Row) -> str:
    """Return where the holders took a lock behind whom threads waited most, "" if not known."""
    sites = context.snapshot.sites
    waits: dict[int, float] = {}
    for lock in context.members(row):
        for charge in lock.blame:
            waits[charge.site] = waits.get(charge.site, 0.0) + charge.wait_s
    known_sites = [site for site in waits if site in sites]
    if not known_sites:
        return ""
    site = max(known_sites, key=waits.__getitem__)
    deed, where = blame.deed(row.kind), full_location(sites[site])
    return f", mostly behind holders that {deed} in {where}"
