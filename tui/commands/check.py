"""``locktop check``: is it deadlocked? For probes and for CI."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from locktop.tui.commands.options import add_pid

if TYPE_CHECKING:
    from locktop.collector.model import DeadlockEdge, Snapshot
    from locktop.tui.lines.picture import Picture

NAME = "check"
HELP = "exit status 0: no deadlock, 1: deadlocked, 2: cannot tell"
DESCRIPTION = """\
Looks at a process twice and says whether threads of it are deadlocked.

exit status: 0 no deadlock among mutexes and reader-writer locks, 1 deadlocked, 2 could not look
or cannot tell, as when the library was dormant while locks were taken. A circle in which an owner
is not known for sure is told as possible and does not count as a deadlock."""

#: Between the two looks that must show the same waits.
_BETWEEN_S = 0.25


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_pid(parser, required=True)
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Look, say, exit."""
    from locktop.collector.attach import attach

    source = attach(arguments.pid)
    try:
        source.look()
        time.sleep(_BETWEEN_S)
        snapshot = source.look()
        if snapshot.deadlocks:
            snapshot = source.look(resolve=True)
    finally:
        source.close()
    if arguments.json:
        import json

        print(json.dumps(as_document(snapshot), indent=1))
    else:
        for line in as_lines(snapshot):
            print(line)
    return exit_status(snapshot)


def exit_status(snapshot: Snapshot) -> int:
    """1 deadlocked, 2 when one could have been missed, else 0."""
    if any(deadlock.certain for deadlock in snapshot.deadlocks):
        return 1
    return 0 if is_complete(snapshot) else 2


def is_complete(snapshot: Snapshot) -> bool:
    """Whether all locks that are held are known: not those taken while nothing was recorded."""
    return snapshot.level != "dormant" and snapshot.complete


def as_document(snapshot: Snapshot) -> dict[str, Any]:
    """The finding, with the deadlocks and what they refer to as in a snapshot."""
    from locktop.collector.export.json_ import document

    whole = document(snapshot)
    tids = {edge.tid for deadlock in snapshot.deadlocks for edge in deadlock.cycle}
    locks = {edge.waits_for for deadlock in snapshot.deadlocks for edge in deadlock.cycle}
    stacks = {str(edge.stack) for deadlock in snapshot.deadlocks for edge in deadlock.cycle}
    return {
        "format": "locktop.check",
        "version": 1,
        "taken_at": whole["taken_at"],
        "host": whole["host"],
        "process": whole["process"],
        "deadlocked": any(deadlock.certain for deadlock in snapshot.deadlocks),
        "complete": is_complete(snapshot),
        "deadlocks": whole["deadlocks"],
        "threads": [thread for thread in whole["threads"] if thread["tid"] in tids],
        "locks": [lock for lock in whole["locks"] if lock["id"] in locks],
        "stacks": {key: stack for key, stack in whole["stacks"].items() if str(key) in stacks},
    }


def as_lines(snapshot: Snapshot) -> list[str]:
    """The finding in one line, and each circle indented below it."""
    from locktop.tui.lines.figures import duration
    from locktop.tui.lines.picture import Picture

    picture = Picture(snapshot)
    certain = [deadlock for deadlock in snapshot.deadlocks if deadlock.certain]
    lines = [_finding(picture, len(certain), len(snapshot.deadlocks) - len(certain))]
    for deadlock in snapshot.deadlocks:
        names = [picture.thread_name(edge.tid) for edge in deadlock.cycle]
        word = "deadlock" if deadlock.certain else "possible deadlock"
        circle = " -> ".join([*names, *names[:1]])
        lines.append(f"  {word} for {duration(deadlock.since_s)}: {circle}")
        for edge in deadlock.cycle:
            lines += [f"    {line}" for line in _edge(picture, edge)]
    return lines


def _finding(picture: Picture, certain: int, possible: int) -> str:
    from locktop.tui.lines.figures import plain

    process = picture.snapshot.process
    who = f"{process.comm} {process.pid}"
    if certain:
        return f"deadlock: {len(picture.stuck_threads)} threads of {who} wait for each other"
    waiting = len(picture.waiting)
    maybe = f", {possible} possible" if possible else ""
    alive = sum(thread.alive for thread in picture.snapshot.threads)
    if not is_complete(picture.snapshot):
        why = "; ".join(picture.snapshot.notes) or "locks were taken while nothing was recorded"
        return plain(f"cannot tell whether there is a deadlock{maybe}: {who}: {why}")
    return (
        f"no deadlock among mutexes and rwlocks{maybe}: {who}, {alive} threads, "
        f"{waiting} waiting for a lock"
    )


def _edge(picture: Picture, edge: DeadlockEdge) -> list[str]:
    from locktop.tui.lines.figures import plain
    from locktop.tui.lines.picture import place

    taken = picture.site(edge.site)
    lines = [
        f"{picture.thread_name(edge.tid)} ({edge.tid}) waits for "
        f"{picture.lock_name(edge.waits_for)}, "
        f"held by {picture.thread_name(edge.held_by)} ({edge.held_by})"
        + (f", taken at {taken}" if taken else "")
    ]
    lines += [f"  {n} {place(frame)}" for n, frame in enumerate(picture.stack(edge.stack))]
    return [plain(line) for line in lines]
