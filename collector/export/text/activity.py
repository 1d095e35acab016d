"""What threads do that wait for nothing that is told, on a page of plain text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from locktop.collector.analysis.thread_groups import common_name
from locktop.collector.format import activity
from locktop.collector.format.units import lasting
from locktop.collector.model import ActivityState, Frame, Snapshot, Thread, ThreadActivity

_MAX_GROUPS = 12
_MAX_TIDS = 8
_MAX_FRAMES = 8
#: In which threads mostly wait for somebody who wants something: these are told last.
_FOR_WORK = {
    "accept", "accept4", "epoll_pwait", "epoll_pwait2", "epoll_wait", "pause", "poll", "ppoll",
    "pselect6", "rt_sigsuspend", "rt_sigtimedwait", "select",
}  # fmt: skip

_Told = tuple[Thread, ThreadActivity]


def lines(
    snapshot: Snapshot,
    when: str,
    name: Callable[[int], str],
    stack: Callable[[Sequence[Frame], str, int], Iterator[str]],
) -> Iterator[str]:
    """Return them, those that do the same at one place together. ``when``: the heading's last word;
    ``name``: what to call a thread, by tid; ``stack``: frames, line by line, with their indent and
    how many at most."""
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


def _groups(threads: Iterable[Thread]) -> list[list[_Told]]:
    """By what they do and where; the fewest first, which are what is not usual, and last those that
    seem to wait for work."""
    found: dict[object, list[_Told]] = {}
    for thread in threads:
        if (now := thread.now) is not None:
            found.setdefault((now.doing, now.call, now.stack), []).append((thread, now))
    return sorted(found.values(), key=lambda one: (one[0][1].call in _FOR_WORK, len(one)))


def _does(group: Sequence[_Told]) -> str:
    first = group[0][1]
    if first.doing is not ActivityState.BLOCKED:
        return activity.doing(first, first.tid) if len(group) == 1 else str(first.doing)
    where = {activity.asleep_in(now) for _, now in group}
    longest = max((now for _, now in group), key=lambda now: now.duration_s)
    most = "up to " if len(group) > 1 and not longest.is_lower_bound else ""
    since = (
        f" for {most}{lasting(longest.duration_s, longest.is_lower_bound)}"
        if longest.duration_s
        else ""
    )
    return (where.pop() if len(where) == 1 else f"in {first.call}()") + since


def _who(group: Sequence[_Told], name: Callable[[int], str]) -> str:
    if len(group) == 1:
        return name(group[0][0].tid)
    tids = ", ".join(str(thread.tid) for thread, _ in group[:_MAX_TIDS])
    more = f" and {len(group) - _MAX_TIDS} more" if len(group) > _MAX_TIDS else ""
    return f"{len(group)} threads ({common_name([one.name for one, _ in group])}: {tids}{more})"
