"""Sections of the text report: threads that wait, their activities, their time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from locktop.collector.analysis.thread_groups import common_name
from locktop.collector.model import ActivityState, Thread, ThreadActivity, ThreadGroup, Wait
from locktop.collector.render.text import time_split
from locktop.collector.render.text.context import MAX_FRAMES, ReportContext
from locktop.collector.render.words import (
    activity,
    probable_holder,
    readers,
    units,
    unobserved_waits,
)
from locktop.collector.render.words.lock_kind import name_with_kind
from locktop.collector.render.words.source_location import function_name, path_and_line
from locktop.collector.render.words.units import lasting

_MAX_THREADS = 50
_MAX_TIDS = 8
_MAX_ACTIVE_GROUPS = 12
_MAX_ACTIVE_FRAMES = 8
#: System calls in which threads mostly wait for work. The report has these threads last.
_FOR_WORK = {
    "accept", "accept4", "epoll_pwait", "epoll_pwait2", "epoll_wait", "pause", "poll", "ppoll",
    "pselect6", "rt_sigsuspend", "rt_sigtimedwait", "select",
}  # fmt: skip

_Active = tuple[Thread, ThreadActivity]


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
    """Yield what the threads without a known wait do.

    Threads that do the same at one source location are one entry.
    """
    groups = _active_groups(context.snapshot.threads)
    if groups:
        yield from ("", f"OTHER THREADS {context.when}")
    for group in groups[:_MAX_ACTIVE_GROUPS]:
        yield f"  {_active_threads(context, group)} {activity_words(group)}"
        frames = context.snapshot.stacks.get(group[0][1].stack, ())
        yield from context.frames(frames, "      ", _MAX_ACTIVE_FRAMES)
    left = sum(map(len, groups[_MAX_ACTIVE_GROUPS:]))
    if left:
        yield f"  and {left} more"


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
    held = f", held by {holder_words(context, wait)}" if wait.holders else ""
    lock = context.locks.get(wait.lock)
    if not held and lock is not None and (probable := probable_holder.tids(lock)):
        names = context.threads_named(probable)
        phrase = probable_holder.phrase(lock, names, context.snapshot.sites)
        held = f"{readers.purpose(wait)}, {phrase}"
    if not held and (of_readers := readers.held_by(lock)):
        held = f"{readers.purpose(wait)}{of_readers}"
    if not held and lock is not None and (likely := context.likely_holder(lock)):
        held = f", holder not known{likely}"
    lasts = units.lasting(wait.duration_s, wait.is_lower_bound)
    renewed = f", in {wait.renewals + 1} waits" if wait.renewals and not many else ""
    yield f"  {who} for {longest}{lasts}{renewed}: {named}{held}"
    yield from context.stack(wait.stack, "      ", max_frames)


def _many_threads(context: ReportContext, group: ThreadGroup) -> str:
    tids = ", ".join(map(str, group.tids[:_MAX_TIDS]))
    more = len(group.tids) - _MAX_TIDS
    listed = f"{tids} and {more} more" if more > 0 else tids
    return f"{len(group.tids)} threads ({group.name}: {listed})"


def holder_words(context: ReportContext, wait: Wait) -> str:
    """Return the holders; for a single holder also the hold time and the call site."""
    named = context.threads_named(wait.holders)
    holder = context.threads.get(wait.holders[0]) if len(wait.holders) == 1 else None
    holds = holder.holds if holder else ()
    taken = next((held for held in holds if held.lock == wait.lock), None)
    if taken is None:
        return named
    frame = context.snapshot.sites.get(taken.site)
    where = f", taken at {function_name(frame)} {path_and_line(frame)}".rstrip() if frame else ""
    own = holder.waiting_for if holder else None
    itself = ""
    if own is not None:
        lasts = units.lasting(own.duration_s, own.is_lower_bound)
        itself = f", itself waiting for {context.lock(own.lock)} for {lasts}"
    return f"{named}{activity.held_for(taken)}{where}{itself}"


def _active_groups(threads: Iterable[Thread]) -> list[list[_Active]]:
    """Return the threads by activity and stack.

    Small groups come first, because they are unusual. Groups that seem to wait for work come last.
    """
    groups: dict[object, list[_Active]] = {}
    for thread in threads:
        if (now := thread.now) is not None:
            groups.setdefault((now.doing, now.call, now.stack), []).append((thread, now))
    return sorted(groups.values(), key=lambda group: (group[0][1].call in _FOR_WORK, len(group)))


def activity_words(group: Sequence[tuple[Thread, ThreadActivity]]) -> str:
    """Return what the threads of a group do: "in poll() for up to 3.2 s"."""
    first = group[0][1]
    if first.doing is not ActivityState.BLOCKED:
        return activity.doing(first, first.tid) if len(group) == 1 else str(first.doing)
    where = {activity.asleep_in(now) for _, now in group}
    longest = max((now for _, now in group), key=lambda now: now.duration_s)
    prefix = "up to " if len(group) > 1 and not longest.is_lower_bound else ""
    since = (
        f" for {prefix}{lasting(longest.duration_s, longest.is_lower_bound)}"
        if longest.duration_s
        else ""
    )
    return (where.pop() if len(where) == 1 else f"in {first.call}()") + since


def _active_threads(context: ReportContext, group: Sequence[_Active]) -> str:
    if len(group) == 1:
        return context.thread(group[0][0].tid)
    tids = ", ".join(str(thread.tid) for thread, _ in group[:_MAX_TIDS])
    more = f" and {len(group) - _MAX_TIDS} more" if len(group) > _MAX_TIDS else ""
    return (
        f"{len(group)} threads ({common_name([thread.name for thread, _ in group])}: {tids}{more})"
    )
