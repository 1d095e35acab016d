"""Everything about the deadlocks, as a page to read and to scroll: each thread of a circle, who is
stuck behind it, what would have avoided it, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from locktop.collector.analysis.deadlock_report import DeadlockReport, Follower, Member, reports
from locktop.collector.export import deadlock_words as words
from locktop.collector.export.units import duration
from locktop.tui.lines.parts import blank, heading, labelled, stack_of
from locktop.tui.lines.picture import Picture, place
from locktop.tui.lines.runs import Line, say

_MOST_BEHIND = 50


def deadlock_details(picture: Picture) -> Iterator[Line]:
    """The lines of the details panel for all deadlocks."""
    for report in reports(picture.snapshot):
        yield from _deadlock(picture, report)
        yield blank()


def _deadlock(picture: Picture, report: DeadlockReport) -> Iterator[Line]:
    what, _, rest = words.headline(report).partition(":")
    yield say((f" {what}", "stuck"), f":{rest}")
    if report.doubt:
        yield say(" not certain: ", report.doubt)
    yield say(" ", (words.circle(report, " → "), "strong"))
    for member in report.circle:
        yield blank()
        yield from _member(picture, report, member)
    if report.behind:
        yield blank()
        yield heading("Stuck behind it" if len(report.circle) == 1 else "Stuck behind them")
        yield from _followers(report)
    yield from _said("What would avoid it", words.avoiding(report))
    yield from _said("What to do now", words.to_do(report))


def _member(picture: Picture, report: DeadlockReport, member: Member) -> Iterator[Line]:
    thread = picture.threads.get(member.tid)
    wait = thread.waiting_for if thread is not None else None
    yield labelled("thread", (member.name or "thread", "stuck"), f" ({member.tid})")
    yield labelled(
        "waits for",
        (words.waits_for(report, member), "strong"),
        (f" for {duration(member.for_s)}" if wait is not None else "", "waiting"),
    )
    whose = words.whose(report, member)
    if whose:
        now = words.holder_now(report, member)
        yield labelled(
            "", (whose, "holder"), *_taken_at(member), (f", {now}" if now else "", "dim")
        )
    for taken in member.has:
        label, _, rest = words.has(report, taken, member, place).partition(" ")
        yield labelled(label, rest)
    yield from stack_of(picture, member.stack_id, wait.site if wait is not None else 0)


def _taken_at(member: Member) -> Iterator[str | tuple[str, str]]:
    if member.taken_at is not None:
        yield from (", taken in ", (place(member.taken_at), "where"))


def _followers(report: DeadlockReport) -> Iterator[Line]:
    for follower in report.behind[:_MOST_BEHIND]:
        yield _follower(report, follower)
    if len(report.behind) > _MOST_BEHIND:
        yield say((f"  and {len(report.behind) - _MOST_BEHIND} more", "dim"))


def _follower(report: DeadlockReport, follower: Follower) -> Line:
    return say(
        "  ",
        (words.thread(report, follower.tid), "stuck"),
        f" waits for {words.waits_for(report, follower)}",
        (f" for {duration(follower.for_s)}", "waiting"),
        *((", in ", (place(follower.at), "where")) if follower.at is not None else ()),
    )


def _said(title: str, sentences: Iterable[str]) -> Iterator[Line]:
    yield blank()
    yield heading(title)
    for sentence in sentences:
        yield say("  ", sentence)
