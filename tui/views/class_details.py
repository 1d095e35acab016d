"""Everything about a class of locks: its sums, how the wait spreads over its locks, all stacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from locktop.collector.analysis import lock_classes
from locktop.collector.analysis.lock_classes import LockClass
from locktop.collector.model import Lock
from locktop.tui.views.cells import bar, counted, duration, exact, percent
from locktop.tui.views.detail_parts import blank, heading, labelled, latest_events
from locktop.tui.views.lock_details import blamed, figures, has_holder, waited_here
from locktop.tui.views.snapshot_index import SnapshotIndex
from locktop.tui.views.styled_line import Line, Run, say

_MAX_NAMED = 3
_WORST = 5
_BAR = 10


def class_details(picture: SnapshotIndex, of: LockClass) -> Iterator[Line]:
    """The lines of the details panel for a class."""
    locks, ids = picture.members(of), frozenset(of.locks)
    destroyed = f", {exact(of.destroyed)} of them destroyed" if of.destroyed else ""
    yield say(
        (f" {of.name}", "strong"),
        f"  {of.kind.value}  {exact(len(of.locks))} locks{destroyed}",
        ("  Right", "key"),
        (" shows them", "dim"),
    )
    if any(map(has_holder, locks)):
        held = sum(bool(lock.holders) for lock in locks)
        # Somebody has what others wait for.
        hidden = picture.dormant or any(lock.waiters and not lock.holders for lock in locks)
        yield labelled("held by", *_these(hidden, held, of.holders, picture, "holder"))
    waited = sum(bool(lock.waiters) for lock in locks)
    yield labelled("waiters", *_these(picture.dormant, waited, of.waiters, picture, "strong"))
    yield from figures(picture, of, ids)
    yield from _spread(picture, of, locks)
    yield from blamed(picture, lock_classes.blame(locks))
    yield from waited_here(picture, lock_classes.wait_stacks(locks))
    events = [event for event in picture.snapshot.events if event.lock in ids]
    yield from latest_events(picture, events, show_lock=False)


def _these(
    hidden: bool, at: int, tids: Sequence[int], picture: SnapshotIndex, style: str
) -> Iterator[Run | str]:
    """How many threads at how many of the locks, and the first of them; ``hidden``: there may be
    others."""
    if not tids:
        yield ("not known" if hidden else "none", "dim")
        return
    yield f"{counted(len(tids), 'thread')} at {exact(at)} of the locks: "
    for number, tid in enumerate(tids[:_MAX_NAMED]):
        yield ", " if number else ""
        yield picture.thread_name(tid), style
    if len(tids) > _MAX_NAMED:
        yield (f" and {len(tids) - _MAX_NAMED} more", "dim")


def _spread(picture: SnapshotIndex, of: LockClass, locks: Sequence[Lock]) -> Iterator[Line]:
    """Whether it is one lock that is waited for or each of them a little."""
    if of.wait_s <= 0:
        return
    worst = sorted(locks, key=lambda lock: -lock.wait_s)
    waited = sum(lock.wait_s > 0 for lock in locks)
    tenth = -(-len(locks) // 10)
    share = percent(sum(lock.wait_s for lock in worst[:tenth]) / of.wait_s)
    yield blank()
    yield heading(
        "Waited for  ",
        f"{exact(waited)} of {exact(len(locks))} locks; {share} of the wait at the worst "
        f"{exact(tenth)}",
    )
    for lock in worst[: min(_WORST, waited)]:
        part = lock.wait_s / of.wait_s
        yield say(
            f"  {duration(lock.wait_s):>6} {percent(part):>4} ",
            (bar(part, _BAR), "waiting"),
            (f" {lock_classes.within(lock, of)}", "strong"),
        )
