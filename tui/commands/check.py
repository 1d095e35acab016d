"""``locktop check``: is it deadlocked? For probes and for CI."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from locktop.tui.commands.options import add_pid

if TYPE_CHECKING:
    from locktop.collector.errors import LocktopError
    from locktop.collector.model import Deadlock, DeadlockEdge, Snapshot
    from locktop.tui.lines.picture import Picture

NAME = "check"
HELP = "exit status 0: no deadlock, 1: deadlocked, 2: cannot tell"
DESCRIPTION = """\
Looks at a process twice and says whether threads of it are deadlocked.

exit status: 0 no deadlock among mutexes and reader-writer locks, 1 deadlocked, 2 could not look
or cannot tell, as when the library was dormant while locks were taken, or when the process ended
between the two looks. A circle in which an owner is not known for sure is told as possible and
does not count as a deadlock."""

#: Between the two looks that must show the same waits.
_BETWEEN_S = 0.25


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_pid(parser)
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Look, say, exit."""
    from locktop.collector.attach import attach

    source = attach(arguments.pid)
    try:
        first = source.look()
        time.sleep(_BETWEEN_S)
        snapshot = source.look()
        if snapshot.deadlocks:
            snapshot = source.look(resolve=True)
    finally:
        source.close()
    if snapshot.ended and not is_deadlocked(snapshot):
        raise _ended(snapshot, first)
    if arguments.json:
        import json

        print(json.dumps(as_document(snapshot), indent=1))
    else:
        for line in as_lines(snapshot):
            print(line)
    return exit_status(snapshot)


def _ended(snapshot: Snapshot, first: Snapshot) -> LocktopError:
    """The error for a process that was gone before two looks could agree; what the later look has
    to say beyond the first tells how."""
    from locktop.collector.errors import LocktopError

    process = snapshot.process
    told = [note for note in snapshot.notes if note not in first.notes]
    ended = f"process {process.pid} ({process.comm}) ended while it was looked at"
    return LocktopError(": ".join([f"cannot tell whether there is a deadlock: {ended}", *told]))


def exit_status(snapshot: Snapshot) -> int:
    """1 deadlocked, 2 when one could have been missed, else 0."""
    if is_deadlocked(snapshot):
        return 1
    return 0 if is_complete(snapshot) else 2


def is_deadlocked(snapshot: Snapshot) -> bool:
    """Whether threads wait in a circle for certain."""
    return any(deadlock.certain for deadlock in snapshot.deadlocks)


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
        "deadlocked": is_deadlocked(snapshot),
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
    lines = [_finding(picture)]
    for deadlock in snapshot.deadlocks:
        names = [picture.thread_name(edge.tid) for edge in deadlock.cycle]
        word = "deadlock" if deadlock.certain else "possible deadlock"
        circle = " -> ".join([*names, *names[:1]])
        lines.append(f"  {word} for {duration(deadlock.since_s)}: {circle}")
        if deadlock.doubt:
            lines.append(f"    not certain: {deadlock.doubt}")
        for edge in deadlock.cycle:
            lines += [f"    {line}" for line in _edge(picture, edge)]
    return lines


def _finding(picture: Picture) -> str:
    from locktop.collector.model import Kind
    from locktop.tui.lines.figures import plain, threads

    snapshot = picture.snapshot
    who = f"{snapshot.process.comm} {snapshot.process.pid}"
    certain = [deadlock for deadlock in snapshot.deadlocks if deadlock.certain]
    if certain:
        return plain(f"deadlock: {_stuck(who, certain, snapshot.ended)}")
    possible = len(snapshot.deadlocks)
    maybe = f", {possible} possible" if possible else ""
    alive = sum(thread.alive for thread in snapshot.threads)
    if not is_complete(snapshot):
        why = "; ".join(snapshot.notes) or "locks were taken while nothing was recorded"
        return plain(f"cannot tell whether there is a deadlock{maybe}: {who}: {why}")
    kinds = [thread.waiting_for.kind for thread in picture.waiting if thread.waiting_for]
    waiting = sum(kind in (Kind.MUTEX, Kind.RWLOCK) for kind in kinds)
    others = len(kinds) - waiting
    unseen = len(snapshot.unseen_waiters)
    return (
        f"no deadlock among mutexes and rwlocks{maybe}: {who}, {threads(alive)}, "
        f"{waiting} waiting for one"
        + (f", {others} for a lock of another kind" if others else "")
        + (f", {unseen} for something that is not seen" if unseen else "")
    )


def _stuck(who: str, deadlocks: list[Deadlock], ended: bool) -> str:
    from locktop.tui.lines.banner import who_for_whom

    count, whom = who_for_whom(deadlocks)
    verb = "waited" if ended else "waits" if count == 1 else "wait"
    then = " when it ended" if ended else ""
    return f"{count} thread{'s' * (count > 1)} of {who} {verb} for {whom}{then}"


def _edge(picture: Picture, edge: DeadlockEdge) -> list[str]:
    from locktop.tui.lines.figures import plain
    from locktop.tui.lines.picture import place

    taken = picture.site(edge.site)
    holder = f"{picture.thread_name(edge.held_by)} ({edge.held_by})"
    if edge.behind:
        why = f"behind {holder}, which waits to write"
    else:
        why = f"held by {'itself' if edge.held_by == edge.tid else holder}"
    lines = [
        f"{picture.thread_name(edge.tid)} ({edge.tid}) waits for "
        f"{picture.lock_name(edge.waits_for)}, {why}" + (f", taken at {taken}" if taken else "")
    ]
    lines += [
        f"  {n} {place(frame)}{' (inlined)' * frame.inlined}"
        for n, frame in enumerate(picture.stack(edge.stack))
    ]
    return [plain(line) for line in lines]
