"""A section of the text report: what the threads without a known wait do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from locktop.collector.analysis.thread_groups import common_name
from locktop.collector.model import ActivityState, Frame, Snapshot, Thread, ThreadActivity
from locktop.collector.render.words import activity
from locktop.collector.render.words.units import lasting

_MAX_GROUPS = 12
_MAX_TIDS = 8
_MAX_FRAMES = 8
#: System calls in which threads mostly wait for work. The report has these threads last.
_FOR_WORK = {
    "accept", "accept4", "epoll_pwait", "epoll_pwait2", "epoll_wait", "pause", "poll", "ppoll",
    "pselect6", "rt_sigsuspend", "rt_sigtimedwait", "select",
}  # fmt: skip

_Active = tuple[Thread, ThreadActivity]


def lines(
    snapshot: Snapshot,
    when: str,
    name: Callable[[int], str],
    stack: Callable[[Sequence[Frame], str, int], Iterator[str]],
) -> Iterator[str]:
    """Yield the section; threads that do the same at one source location are one entry.

    Args:
        snapshot: the scan.
        when: the end of the heading.
        name: returns the name of a thread by its tid.
        stack: yields the lines of frames, with an indent and a maximum number of frames.
    """
    groups = _groups(snapshot.threads)
    if groups:
        yield f"OTHER THREADS {when}"
    for group in groups[:_MAX_GROUPS]:
        yield f"  {_who(group, name)} {_does(group)}"
        frames = snapshot.stacks.get(group[0][1].stack, ())
        yield from stack(frames, "      ", _MAX_FRAMES)
    left = sum(map(len, groups[_MAX_GROUPS:]))
    if left:
        yield f"  and {left} more"


def _groups(threads: Iterable[Thread]) -> list[list[_Active]]:
    """Return the threads by activity and stack.

    Small groups come first, because they are unusual. Groups that seem to wait for work come last.
    """
    groups: dict[object, list[_Active]] = {}
    for thread in threads:
        if (now := thread.now) is not None:
            groups.setdefault((now.doing, now.call, now.stack), []).append((thread, now))
    return sorted(groups.values(), key=lambda group: (group[0][1].call in _FOR_WORK, len(group)))


def _does(group: Sequence[_Active]) -> str:
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


def _who(group: Sequence[_Active], name: Callable[[int], str]) -> str:
    if len(group) == 1:
        return name(group[0][0].tid)
    tids = ", ".join(str(thread.tid) for thread, _ in group[:_MAX_TIDS])
    more = f" and {len(group) - _MAX_TIDS} more" if len(group) > _MAX_TIDS else ""
    return (
        f"{len(group)} threads ({common_name([thread.name for thread, _ in group])}: {tids}{more})"
    )
