"""A snapshot as a text report, for a ticket: what is wrong first, figures after that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from locktop.collector.analysis import deadlock_report
from locktop.collector.extension.discovery import extensions
from locktop.collector.model import Snapshot
from locktop.collector.render.text import (
    blame,
    blocking,
    deadlock,
    lock_order,
    locks,
    threads,
)
from locktop.collector.render.text.context import ReportContext
from locktop.collector.render.words import (
    activity,
    child_waits,
    elsewhere,
    hang,
    present_waits,
    probable_holder,
    unit_takers,
    units,
    verdict,
)
from locktop.collector.render.words.misuse import misuse_sentence
from locktop.collector.render.words.wrap import wrapped

_MAX_MARKS = 20
_MAX_MISUSES = 10
_MAX_PATTERNS = 10


def render(
    snapshot: Snapshot, before: Snapshot | None = None, width: int = 100, idle: bool = False
) -> str:
    """Return the report.

    Args:
        snapshot: the scan.
        before: an earlier scan of the same process. With it the figures of locks are those of the
            time between the two scans.
        width: no line is longer.
        idle: list the threads that wait for work too.
    """
    context = ReportContext(snapshot, before)
    return (
        "\n".join(part for line in _lines(context, idle, width) for part in wrapped(line, width))
        + "\n"
    )


def _lines(context: ReportContext, with_idle: bool, width: int) -> Iterator[str]:
    """Yield the sections in their order: first what is wrong, then figures."""
    snapshot = context.snapshot
    yield from _main_facts(context)
    yield ""
    yield from _head(context)
    for report in () if hang.is_the_finding(snapshot) else deadlock_report.reports(snapshot):
        yield ""
        yield from deadlock.lines(report)
    if verdict.long_hang(snapshot) is not None:
        yield from ("", *hang.lines(snapshot))
    if taken := list(unit_takers.lines(snapshot)):
        yield from ("", *taken)
    yield from blocking.roots(context)
    yield from _holders_elsewhere(context)
    if of_child := child_waits.sentence(snapshot):
        yield from ("", of_child)
    yield ""
    yield from locks.lock_table(context)
    yield from _patterns(context)
    for extension in extensions():
        if extension.report is not None:
            yield from extension.report(snapshot, width)
    yield from blame.holder_activities(context)
    yield from locks.signal_table(context)
    yield from threads.waiting_threads(context)
    yield from threads.unobserved_threads(context)
    yield from threads.thread_activities(context)
    if with_idle:
        yield from threads.idle_threads(context)
    yield from threads.thread_times(context)
    yield from blame.wait_locations(context)
    yield from _misuses(context)
    yield from _marks(context)
    potential = list(lock_order.lines(snapshot))
    yield from ["", *potential] if potential else ()
    if snapshot.notes:
        yield from ("", "NOTES", *(f"  {note}" for note in snapshot.notes))


def _main_facts(context: ReportContext) -> Iterator[str]:
    """Yield the verdict, and without a deadlock the worst lock: what a hurried reader must know."""
    snapshot = context.snapshot
    yield verdict.line(snapshot)
    if verdict.is_deadlocked(snapshot):
        return
    if waits_now := next(present_waits.sentences(snapshot), ""):
        yield f"worst lock {context.when.lower()}: {waits_now}"
    elif rows := context.rows_with_waits():
        waited = units.duration(context.contention_s(rows[0]))
        yield f"most waited for: {context.row_name(rows[0])}, {waited} of waits"


def _head(context: ReportContext) -> Iterator[str]:
    snapshot, process = context.snapshot, context.snapshot.process
    if snapshot.is_sampled:
        observed = "sampled for"
    else:
        observed = "counting for" if context.before is None else "counted over"
    recorded = ", from a recording" if snapshot.source == "recording" else ""
    yield f"locktop {snapshot.taken_at} on {snapshot.host}{recorded}"
    yield f"process {process.pid} {process.comm}: {' '.join(process.cmdline) or process.exe}"
    yield (
        f"started {process.started_at}, {units.size(process.rss_bytes)} resident,"
        f" {observed} {units.duration(context.span_s)}"
    )
    yield _counts(context)
    if waiters := verdict.unknown_waits_alone(snapshot):
        yield _unobserved_words(context, waiters)
    if snapshot.ended:
        yield "the process has ended; these are its last figures"


def _counts(context: ReportContext) -> str:
    ended = context.snapshot.ended  # with it all its threads
    counted = [thread for thread in context.snapshot.threads if thread.alive or ended]
    holders = probable_holder.awaited_tids(context.locks.values())
    states = Counter(activity.state(thread, holders) for thread in counted)
    listed = ", ".join(f"{count} {state}" for state, count in states.most_common())
    doing = "" if ended else f" ({listed})"
    left_out = context.snapshot.locks_left_out
    return (
        f"{units.counted(len(counted), 'thread')}{doing},"
        f" {units.counted(len(context.locks) + left_out, 'lock')}{_lost_records(context)}"
    )


def _lost_records(context: ReportContext) -> str:
    lost = context.snapshot.lost_events
    return f", {units.counted(lost, 'record')} overwritten (counted all the same)" if lost else ""


def _unobserved_words(context: ReportContext, waiters: Sequence[int]) -> str:
    verb = "waits" if len(waiters) == 1 else "wait"
    where = "below" if context.snapshot.unobserved_waits else "the notes"
    return f"{context.threads_named(waiters)} {verb} for something unknown: see {where}"


def _holders_elsewhere(context: ReportContext) -> Iterator[str]:
    """Yield one entry for each lock that a thread of another process holds."""
    others = context.threads_elsewhere
    pairs = [
        (lock, others[tid])
        for lock in context.snapshot.locks
        for tid in lock.holders
        if tid in others
    ]
    if pairs:
        yield from ("", f"HELD BY OTHER PROCESSES {context.when}")
    for lock, thread in pairs:
        yield f"  {elsewhere.full_name(thread)} holds {context.lock(lock.id)}"
        if advice := elsewhere.advice(thread, lock):
            yield f"    {advice}"


def _patterns(context: ReportContext) -> Iterator[str]:
    patterns = context.snapshot.patterns
    if patterns:
        yield from ("", "CONTENTION PATTERNS")
    for pattern in patterns[:_MAX_PATTERNS]:
        where = f" at {context.lock(pattern.lock)}" if pattern.lock else ""
        yield f"  {pattern.name.words}{where}: {pattern.evidence}"
        yield f"    {pattern.advice}"
    if len(patterns) > _MAX_PATTERNS:
        yield f"  and {len(patterns) - _MAX_PATTERNS} more"


def _misuses(context: ReportContext) -> Iterator[str]:
    if context.snapshot.misuses:
        yield from ("", "MISUSES OF LOCKS")
    for misuse in context.snapshot.misuses[:_MAX_MISUSES]:
        said = misuse_sentence(misuse, context.thread, context.lock)
        yield f"  {context.lock(misuse.lock)}: {said}"
        yield from context.stack(misuse.stack, "      ")
    if len(context.snapshot.misuses) > _MAX_MISUSES:
        yield f"  and {len(context.snapshot.misuses) - _MAX_MISUSES} more"


def _marks(context: ReportContext) -> Iterator[str]:
    """Yield the annotations of the program; the newest last, as in a log."""
    if context.snapshot.marks:
        yield from ("", "MARKS")
    for mark in reversed(context.snapshot.marks[:_MAX_MARKS]):
        yield f"  {units.duration(mark.ago_s)} ago, {context.thread(mark.tid)}: {mark.text}"
