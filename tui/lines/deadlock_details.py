"""Everything about the deadlocks: each thread of a circle, where it waits, what it took."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.model import Deadlock, DeadlockEdge
from locktop.tui.lines.banner import who_for_whom, word
from locktop.tui.lines.figures import duration
from locktop.tui.lines.parts import blank, labelled, stack_of
from locktop.tui.lines.picture import Picture
from locktop.tui.lines.runs import Line, say


def deadlock_details(picture: Picture) -> Iterator[Line]:
    """The lines of the details panel for all deadlocks."""
    for deadlock in picture.snapshot.deadlocks:
        yield from _deadlock(picture, deadlock)
        yield blank()


def _deadlock(picture: Picture, deadlock: Deadlock) -> Iterator[Line]:
    count, whom = who_for_whom([deadlock])
    yield say(
        (f" {word(deadlock)}", "stuck"),
        f" of {count} thread{'s' * (count > 1)} that wait{'s' * (count == 1)} for {whom}",
        f", for {duration(deadlock.since_s)}",
    )
    if deadlock.doubt:
        yield say(" not certain: ", deadlock.doubt)
    yield say(" ", (_circle(picture, deadlock), "strong"))
    for edge in deadlock.cycle:
        yield blank()
        yield from _edge(picture, edge)


def _circle(picture: Picture, deadlock: Deadlock) -> str:
    names = [picture.thread_name(edge.tid) for edge in deadlock.cycle]
    return " → ".join([*names, *names[:1]])


def _edge(picture: Picture, edge: DeadlockEdge) -> Iterator[Line]:
    yield labelled("thread", (picture.thread_name(edge.tid), "stuck"), f" ({edge.tid})")
    thread = picture.threads.get(edge.tid)
    wait = thread.waiting_for if thread is not None else None
    kind = picture.locks[edge.waits_for].kind.value if edge.waits_for in picture.locks else "lock"
    yield labelled(
        "waits for",
        (picture.lock_name(edge.waits_for), "strong"),
        f" ({kind})",
        (f" for {duration(wait.for_s)}" if wait is not None else "", "waiting"),
    )
    yield labelled(
        "behind" if edge.behind else "held by",
        (picture.thread_name(edge.held_by), "holder"),
        ", which waits to write and goes first" * edge.behind,
        ", taken at " if edge.site else "",
        (picture.site(edge.site), "where"),
    )
    yield from stack_of(picture, edge.stack, wait.site if wait is not None else 0)
