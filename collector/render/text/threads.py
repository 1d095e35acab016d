"""Sections of the text report: threads that wait, their activities, their time."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.model import Thread, ThreadGroup, Wait
from locktop.collector.render.text import activity as activity_text
from locktop.collector.render.text import time_split
from locktop.collector.render.text.context import MAX_FRAMES, ReportContext
from locktop.collector.render.words import units, unobserved_waits
from locktop.collector.render.words.lock_kind import name_with_kind
from locktop.collector.render.words.source_location import function_name, path_and_line

_MAX_THREADS = 50
_MAX_TIDS = 8


def waiting_threads(context: ReportContext) -> Iterator[str]:
    """Yield the threads that wait for a lock, or whose locks others wait for."""
    waiting = [
        (group, group.wait)
        for group in context.groups
        if group.wait and (not group.wait.idle or _is_wanted(context, group.first))
    ]
    yield from _waits(
        context, f"THREADS WAITING {context.when}, longest first", waiting, MAX_FRAMES
    )


def idle_threads(context: ReportContext) -> Iterator[str]:
    """Yield the threads that wait for work."""
    idle = [(group, group.wait) for group in context.groups if group.wait and group.wait.idle]
    yield from _waits(context, f"THREADS WAITING FOR WORK {context.when}, longest first", idle, 1)


def _waits(
    context: ReportContext, heading: str, waiting: list[tuple[ThreadGroup, Wait]], max_frames: int
) -> Iterator[str]:
    waiting.sort(key=lambda entry: -entry[1].duration_s)
    if waiting:
        yield from ("", heading)
    for group, wait in waiting[:_MAX_THREADS]:
        yield from _waiting_group(context, group, wait, max_frames)
    left = sum(len(group.threads) for group, _ in waiting[_MAX_THREADS:])
    if left:
        yield f"  and {left} more"


def unobserved_threads(context: ReportContext) -> Iterator[str]:
    """Yield the threads in waits that the library does not observe."""
    lines = list(unobserved_waits.lines(context.snapshot, context.thread, context.frames))
    yield from ["", *lines] if lines else ()


def thread_activities(context: ReportContext) -> Iterator[str]:
    """Yield what the threads without a known wait do."""
    lines = list(
        activity_text.lines(context.snapshot, context.when, context.thread, context.frames)
    )
    yield from ["", *lines] if lines else ()


def thread_times(context: ReportContext) -> Iterator[str]:
    """Yield where the time of the threads went in the last interval."""
    span_s = units.duration(context.snapshot.interval_s)
    table = list(time_split.lines(context.snapshot.threads, span_s, context.thread))
    yield from ["", *table] if table else ()


def _is_wanted(context: ReportContext, thread: Thread) -> bool:
    """Return whether another thread waits for a lock that this thread holds."""
    locks = (context.locks.get(held.lock) for held in thread.holds)
    return any(lock.waiters for lock in locks if lock is not None)


def _waiting_group(
    context: ReportContext, group: ThreadGroup, wait: Wait, max_frames: int
) -> Iterator[str]:
    """Yield one entry for all threads that wait for one lock at one call site."""
    many = len(group.threads) > 1
    who = _many_threads(context, group) if many else context.thread(group.first.tid)
    longest = "up to " if many and not wait.is_lower_bound else ""
    named = context.lock(group.lock) if group.lock else f"one {wait.kind} each"
    if group.lock_name and not group.lock:
        named = f"{name_with_kind(wait.kind, group.lock_name)}, one lock each"
    held = f", held by {_holders(context, wait)}" if wait.holders else ""
    lasts = units.lasting(wait.duration_s, wait.is_lower_bound)
    yield f"  {who} for {longest}{lasts}: {named}{held}"
    yield from context.stack(wait.stack, "      ", max_frames)


def _many_threads(context: ReportContext, group: ThreadGroup) -> str:
    tids = ", ".join(map(str, group.tids[:_MAX_TIDS]))
    more = len(group.tids) - _MAX_TIDS
    listed = f"{tids} and {more} more" if more > 0 else tids
    return f"{len(group.tids)} threads ({group.name}: {listed})"


def _holders(context: ReportContext, wait: Wait) -> str:
    """Return the holders; for a single holder also the hold time and the call site."""
    named = context.threads_named(wait.holders)
    holder = context.threads.get(wait.holders[0]) if len(wait.holders) == 1 else None
    holds = holder.holds if holder else ()
    taken = next((held for held in holds if held.lock == wait.lock), None)
    if taken is None:
        return named
    since = f" for {units.duration(taken.duration_s)}" if taken.duration_s is not None else ""
    frame = context.snapshot.sites.get(taken.site)
    where = f", taken at {function_name(frame)} {path_and_line(frame)}".rstrip() if frame else ""
    own = holder.waiting_for if holder else None
    itself = ""
    if own is not None:
        lasts = units.lasting(own.duration_s, own.is_lower_bound)
        itself = f", itself waiting for {context.lock(own.lock)} for {lasts}"
    return f"{named}{since}{where}{itself}"
