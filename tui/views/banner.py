"""The deadlock banner: who, what, since when, where. Says it in words, not only in colour."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.cells import cell_len

from locktop.collector.format.deadlock import SHORTLY, who_for_whom
from locktop.collector.format.source_location import short_location, shortest_location
from locktop.collector.model import BlockReason, Deadlock, DeadlockEdge, Frame
from locktop.tui.views.cells import lasting
from locktop.tui.views.shorten import middle, place_in
from locktop.tui.views.snapshot_index import SnapshotIndex
from locktop.tui.views.styled_line import Line, say

#: Cells under which a name says nothing any more.
_MIN_NAME = 8


def banner(picture: SnapshotIndex, most: int, width: int) -> tuple[Line, ...]:
    """The lines of the banner, at most ``most``, ``width`` cells wide; none without a deadlock."""
    deadlocks = picture.snapshot.deadlocks
    if not deadlocks:
        return ()
    lines = [_title(deadlocks)]
    edges = [edge for deadlock in deadlocks for edge in deadlock.cycle]
    room = most - 1
    shown = edges if len(edges) <= room else edges[: room - 1]
    lines += _edges(picture, shown, width)
    if len(shown) < len(edges):
        lines.append(say((f"   and {len(edges) - len(shown)} more: press d", "alarm")))
    return tuple(lines)


def no_deadlock(picture: SnapshotIndex) -> str:
    """That there is none, as far as can be told."""
    snapshot = picture.snapshot
    waits = [thread.waiting_for for thread in picture.waiting]
    hidden = sum(wait is not None and not wait.holders for wait in waits)
    hidden += sum(wait.idle is False for wait in snapshot.unobserved_waits)
    if hidden:
        many = f"{hidden} threads wait" if hidden > 1 else "a thread waits"
        return f"No deadlock is seen; who has what {many} for is not known."
    if snapshot.is_sampled:
        return "No deadlock is seen. What could come about is not known from outside."
    if picture.dormant or not snapshot.complete:
        return "No deadlock is seen, but not all that is held is known: see the notes (?)."
    return "There is no deadlock. None is seen that could come about."


def _title(deadlocks: Sequence[Deadlock]) -> Line:
    """How many there are, and how old the oldest is. What is certain is not hidden among what is
    not."""
    certain = [deadlock for deadlock in deadlocks if deadlock.certain]
    told = certain or deadlocks
    count, whom = who_for_whom(told)
    wait = f"{count} threads wait" if count > 1 else "1 thread waits"
    word = "DEADLOCK" if certain else "POSSIBLE DEADLOCK"
    what = f"{len(told)} {word}S, the oldest" if len(told) > 1 else word
    oldest = max(told, key=lambda deadlock: deadlock.since_s)
    since = lasting(oldest.since_s, oldest.is_lower_bound)
    return say((f" !! {what} for {since}: {wait} for {whom}   d: their stacks ", "alarm"))


def _edges(picture: SnapshotIndex, edges: Sequence[DeadlockEdge], width: int) -> list[Line]:
    """A line for each, all in the same words: the fullest for which there is room."""
    for say_location in (short_location, shortest_location):
        texts = [_in_full(picture, edge, say_location) for edge in edges]
        if all(cell_len(text) <= width for text in texts):
            return [say((text, "alarm")) for text in texts]
    return [_in_brief(picture, edge, width) for edge in edges]


def _in_full(picture: SnapshotIndex, edge: DeadlockEdge, say_place: Callable[[Frame], str]) -> str:
    thread, lock = picture.thread_name(edge.tid), picture.lock_name(edge.waits_for)
    holder = _holder(picture, edge, SHORTLY[edge.reason])
    frame, site = _waits_at(picture, edge), picture.snapshot.sites.get(edge.site)
    at = f"; at {say_place(frame)}" if frame else ""
    taken = f", taken at {say_place(site)}" if site else ""
    return f"    {thread} waits for {lock}, {holder}{at}{taken}"


def _in_brief(picture: SnapshotIndex, edge: DeadlockEdge, width: int) -> Line:
    """Thread, lock and holder always; then both places, as much of them as there is room for."""
    thread, lock = picture.thread_name(edge.tid), picture.lock_name(edge.waits_for)
    holder = _holder(picture, edge, "of" if edge.reason is BlockReason.HELD else SHORTLY[edge.reason])
    frame, site = _waits_at(picture, edge), picture.snapshot.sites.get(edge.site)
    room = width - cell_len(f" {thread} wants  {holder}")
    # A long name leaves half of the room to the places: both its ends are still to be seen.
    room = max(_MIN_NAME, room // 2, room - cell_len(_places(frame, site, width)))
    text = f" {thread} wants {middle(lock, room)} {holder}"
    return say((text + _places(frame, site, width - cell_len(text)), "alarm"))


def _holder(picture: SnapshotIndex, edge: DeadlockEdge, how: str) -> str:
    return f"{how} {picture.thread_name(edge.held_by) if edge.held_by else 'anybody'}"


def _waits_at(picture: SnapshotIndex, edge: DeadlockEdge) -> Frame | None:
    """Without stacks the place of the call is known all the same."""
    waiter = picture.threads.get(edge.tid)
    return picture.top_frame(edge.stack) or (picture.wait_frame(waiter) if waiter else None)


def _places(frame: Frame | None, site: Frame | None, room: int) -> str:
    """Where the thread waits (and where the lock was taken), in at most ``room`` cells."""
    if frame is None or room < len(", at ") + _MIN_NAME:
        return ""
    room -= len(", at ")
    if site is None or room < len(" ()") + 2 * _MIN_NAME:
        return f", at {place_in(frame, room)}"
    room -= len(" ()")
    # Half of the room is for each; what one leaves is for the other.
    at = place_in(frame, max(room - cell_len(shortest_location(site)), (room + 1) // 2))
    return f", at {at} ({place_in(site, room - cell_len(at))})"
