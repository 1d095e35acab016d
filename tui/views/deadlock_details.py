"""The details of all deadlocks, to read and to scroll.

They have each thread of a cycle, the threads stuck behind, what would avoid it, and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from locktop.collector.model import BlockReason, DeadlockReport, Member
from locktop.collector.render.words import deadlock as words
from locktop.collector.render.words import unit_takers
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.source_location import short_location
from locktop.collector.render.words.units import lasting
from locktop.tui.views.detail_parts import blank, heading, labelled, stack_of
from locktop.tui.views.findings import advice_line
from locktop.tui.views.styled_line import Line, make_line

_MAX_BEHIND = 50
#: Threads of the first lines. The other threads have sections only.
_MAX_SUMMED = 3


def deadlock_details(
    index: SnapshotIndex, reports: Sequence[DeadlockReport] | None = None
) -> Iterator[Line]:
    """The lines of the details panel for ``reports``; None: for all deadlocks."""
    for report in index.deadlock_reports if reports is None else reports:
        yield from _deadlock(index, report)
        yield blank()


def _deadlock(index: SnapshotIndex, report: DeadlockReport) -> Iterator[Line]:
    what, _, rest = words.headline(report).partition(":")
    yield make_line((f" {what}", "stuck"), f":{rest}")
    if report.doubt:
        yield make_line(" not certain: ", report.doubt)
    yield from _summary(index, report)
    for member in report.circle:
        yield blank()
        yield from _member(index, report, member)
    if report.behind:
        yield blank()
        yield heading("Stuck behind it" if len(report.circle) == 1 else "Stuck behind them")
        yield from _followers(report)
    yield from _section("What would avoid it", words.avoiding(report))
    yield from _section("What to do now", words.to_do(report))


def _summary(index: SnapshotIndex, report: DeadlockReport) -> Iterator[Line]:
    """The answer before the stacks: the waits with their locations, and the advice."""
    first = report.circle[0].waits_for.id
    if report.waiters and (taken := unit_takers.phrase(index, first)):
        yield labelled("units", (taken, "holder"))
    elif len(report.circle) > _MAX_SUMMED:
        yield make_line(" ", (words.circle(report, " → "), "strong"))
    for member in () if report.waiters else report.circle[:_MAX_SUMMED]:
        whose = words.whose(report, member)
        where = (" in ", (short_location(member.at), "where")) if member.at is not None else ()
        yield make_line(
            (f" {member.name or member.tid}", "stuck"),
            " waits",
            *where,
            " for ",
            (words.waits_for(report, member), "strong"),
            (f", {whose}" if whose else "", "holder"),
            *_taken_at(member),
        )
    yield advice_line(words.advice(report))
    if report.certain and not report.ended:
        yield labelled(
            "now",
            "No thread of it goes on. ",
            ("w", "key"),
            " saves a snapshot; then end the process.",
        )


def _member(index: SnapshotIndex, report: DeadlockReport, member: Member) -> Iterator[Line]:
    thread = index.threads.get(member.tid)
    wait = thread.waiting_for if thread is not None else None
    yield labelled("thread", (member.name or "thread", "stuck"), f" ({member.tid})")
    yield labelled(
        "waits for",
        (words.waits_for(report, member), "strong"),
        (
            f" for {lasting(member.duration_s, member.is_lower_bound)}" if wait is not None else "",
            "waiting",
        ),
    )
    whose = words.whose(report, member)
    if whose:
        now = words.holder_activity(report, member)
        yield labelled(
            "", (whose, "holder"), *_taken_at(member), (f", {now}" if now else "", "dim")
        )
    for taken in member.has:
        label, _, rest = words.has(report, taken, member, short_location).partition(" ")
        yield labelled(label, rest)
    yield from stack_of(index, member.stack_id, wait.site if wait is not None else 0)


def _taken_at(member: Member) -> Iterator[str | tuple[str, str]]:
    if member.taken_at is not None:
        is_probable = member.reason is BlockReason.PROBABLY_HELD
        verb = "which goes on to release it in" if is_probable else "taken in"
        yield from (f", {verb} ", (short_location(member.taken_at), "where"))


def _followers(report: DeadlockReport) -> Iterator[Line]:
    groups = words.alike(report)
    for group in groups[:_MAX_BEHIND]:
        (who, waits, lasts), frame = words.followers(report, group), group[0].at
        where = (", in ", (short_location(frame), "where")) if frame is not None else ()
        yield make_line("  ", (who, "stuck"), f" {waits}", (f" {lasts}", "waiting"), *where)
    left = sum(map(len, groups[_MAX_BEHIND:]))
    if left:
        yield make_line((f"  and {left} more", "dim"))


def _section(title: str, sentences: Iterable[str]) -> Iterator[Line]:
    yield blank()
    yield heading(title)
    for sentence in sentences:
        yield make_line("  ", sentence)
