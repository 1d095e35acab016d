"""The deadlock banner: who, what, since when, where. Says it in words, not only in colour."""

from __future__ import annotations

from locktop.collector.model import Deadlock, DeadlockEdge
from locktop.tui.lines.figures import duration
from locktop.tui.lines.picture import Picture
from locktop.tui.lines.runs import Line, say


def banner(picture: Picture, most: int) -> tuple[Line, ...]:
    """The lines of the banner, at most ``most``; none when there is no deadlock."""
    deadlocks = picture.snapshot.deadlocks
    if not deadlocks:
        return ()
    lines = [_title(deadlocks)]
    edges = [edge for deadlock in deadlocks for edge in deadlock.cycle]
    room = most - 1
    shown = edges if len(edges) <= room else edges[: room - 1]
    lines += [_edge(picture, edge) for edge in shown]
    if len(shown) < len(edges):
        lines.append(say((f"   and {len(edges) - len(shown)} more: press d", "alarm")))
    return tuple(lines)


def word(deadlock: Deadlock) -> str:
    """What to call it."""
    return "DEADLOCK" if deadlock.certain else "POSSIBLE DEADLOCK"


def _title(deadlocks: tuple[Deadlock, ...]) -> Line:
    first = deadlocks[0]
    threads = sum(len(deadlock.cycle) for deadlock in deadlocks)
    many = f" ({len(deadlocks)} of them)" if len(deadlocks) > 1 else ""
    since = duration(max(deadlock.since_s for deadlock in deadlocks))
    return say(
        (f" !! {word(first)}{many}: {threads} threads wait for each other since {since}", "alarm"),
        ("   d: their stacks ", "alarm"),
    )


def _edge(picture: Picture, edge: DeadlockEdge) -> Line:
    where = picture.stack_top(edge.stack)
    taken = picture.site(edge.site)
    return say(
        (
            f"    {picture.thread_name(edge.tid)} waits for {picture.lock_name(edge.waits_for)}",
            "alarm",
        ),
        (f" held by {picture.thread_name(edge.held_by)}", "alarm"),
        (f"  at {where}" if where else "", "alarm"),
        (f", taken at {taken}" if taken else "", "alarm"),
    )
