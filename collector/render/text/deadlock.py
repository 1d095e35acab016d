"""A deadlock as a page of plain text, for a ticket."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.model import DeadlockReport, Member
from locktop.collector.render.words import deadlock as words
from locktop.collector.render.words.source_location import full_location
from locktop.collector.render.words.units import counted, lasting

_MAX_BEHIND = 20
_MAX_FRAMES = 30


def lines(report: DeadlockReport) -> Iterator[str]:
    """Yield the lines; the first is the headline. They are not wrapped."""
    yield words.headline(report)
    if report.doubt:
        yield f"  not certain: {report.doubt}"
    yield f"  {words.circle(report)}"
    for member in report.circle:
        yield ""
        yield from _member(report, member)
    if report.behind:
        yield from ("", f"  STUCK BEHIND {'IT' if len(report.circle) == 1 else 'THEM'}")
        yield from _followers(report)
    yield from ("", "  WHAT WOULD AVOID IT")
    yield from (f"    {said}" for said in words.avoiding(report))
    yield from ("", "  WHAT TO DO NOW")
    yield from (f"    {said}" for said in words.to_do(report))


def _member(report: DeadlockReport, member: Member) -> Iterator[str]:
    location = f", in {full_location(member.at)}" if member.at is not None else ""
    duration_s = (
        f" for {lasting(member.duration_s, member.is_lower_bound)}" if member.duration_s else ""
    )
    yield (
        f"  {words.thread(report, member.tid)} waits for"
        f" {words.waits_for(report, member)}{duration_s}{location}"
    )
    parts = (
        words.whose(report, member),
        words.taken_at(member),
        words.holder_activity(report, member),
    )
    whose = ", ".join(filter(None, parts))
    if whose:
        yield f"    {whose}"
    for taken in member.has:
        yield f"    {words.has(report, taken, member)}"
    yield from _stack(member)


def _stack(member: Member) -> Iterator[str]:
    for number, frame in enumerate(member.stack[:_MAX_FRAMES]):
        yield f"      {number} {full_location(frame)}{' (inlined)' * frame.inlined}"
    if len(member.stack) > _MAX_FRAMES:
        yield f"      and {counted(len(member.stack) - _MAX_FRAMES, 'frame')} more"


def _followers(report: DeadlockReport) -> Iterator[str]:
    groups = words.alike(report)
    for group in groups[:_MAX_BEHIND]:
        location = f", in {full_location(group[0].at)}" if group[0].at is not None else ""
        yield f"    {' '.join(words.followers(report, group))}{location}"
    left = sum(map(len, groups[_MAX_BEHIND:]))
    if left:
        yield f"    and {left} more"
