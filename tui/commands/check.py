"""``locktop check``: is it deadlocked? For probes and for CI."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from typing import TYPE_CHECKING, Any

from locktop.tui.commands.options import add_looking, add_pid, add_suppressions, attached
from locktop.tui.commands.output import add_output, destination, write

if TYPE_CHECKING:
    from locktop.collector.errors import LocktopError
    from locktop.collector.model import Snapshot

NAME = "check"
HELP = "exit status 0: no deadlock, 1: deadlocked, 2: cannot tell"
DESCRIPTION = """\
Looks at a process twice and says whether threads of it are deadlocked. The first line says it; of
a deadlock the report follows: who waits for whom, where, what would have avoided it.

exit status: 0 no deadlock found, 1 deadlocked, 2 could not look or cannot tell, as when the
library was dormant while locks were taken, or when the process ended between the two looks. A
circle in which an owner is not known for sure is told as possible and does not count as a
deadlock. With --potential the status is 1 too where locks were taken in different orders since the
process started, with at least medium confidence: for tests, not for probes, for it stays so and
nothing hangs because of it."""

FORMATS = ("text", "line", "json", "dot", "mermaid")

#: Of a snapshot, with --potential.
_ORDER_KEYS = ("lock_order", "lock_order_suppressed", "lock_order_unproven")
#: Between the two looks that must show the same waits.
_BETWEEN_S = 0.25


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_pid(parser)
    add_looking(parser)
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="text (the default), line: the first line only, json, or a drawing of the circles"
        " for Graphviz (dot) or Mermaid",
    )
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    parser.add_argument(
        "--potential",
        action="store_true",
        help="also tell, with status 1, that locks were taken in different orders",
    )
    add_suppressions(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="the exit status says it all")
    add_output(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Look, say, exit."""
    from locktop.collector.config import suppressions

    form = _form(arguments)
    path = destination(arguments)
    left_out = suppressions.load(arguments.suppressions) if arguments.potential else ()
    snapshot = suppressions.applied(_scanned(arguments), left_out)
    if path is not None:
        write(rendered(snapshot, form, arguments.potential), path, arguments)
        if not arguments.quiet:
            write(rendered(snapshot, "line", arguments.potential), None, arguments)
    elif not arguments.quiet:
        write(rendered(snapshot, form, arguments.potential), None, arguments)
    return exit_status(snapshot, arguments.potential)


def _form(arguments: argparse.Namespace) -> str:
    from locktop.collector.errors import LocktopError

    form: str = arguments.format or ("json" if arguments.json else "text")
    if arguments.json and form != "json":
        raise LocktopError(f"--json and --format {form} are two forms; ask for one")
    return form


def _scanned(arguments: argparse.Namespace) -> Snapshot:
    """The later of two looks. Raises LocktopError where they cannot tell."""
    from locktop.collector.format import verdict
    from locktop.collector.model import Kind

    source = attached(arguments.pid, arguments)
    try:
        first = source.scan()
        time.sleep(_BETWEEN_S)
        snapshot = source.scan()
        potential = arguments.potential and snapshot.lock_order
        # Rules go by names, which to look for takes longer than a probe should otherwise.
        # Also whether a semaphore that is waited for is a lock of Python's.
        on_semaphores = any(
            thread.waiting_for is not None
            and thread.waiting_for.kind is Kind.SEM
            and thread.waiting_for.idle
            for thread in snapshot.threads
        )
        if snapshot.deadlocks or potential or arguments.idle_matching or on_semaphores:
            snapshot = source.scan(resolve=True)
    finally:
        source.close()
    if snapshot.ended and not verdict.is_deadlocked(snapshot):
        raise _ended(snapshot, first)
    return snapshot


def _ended(snapshot: Snapshot, first: Snapshot) -> LocktopError:
    """The error for a process that was gone before two looks could agree; what the later look has
    to say beyond the first tells how."""
    from locktop.collector.errors import LocktopError

    process = snapshot.process
    told = [note for note in snapshot.notes if note not in first.notes]
    ended = f"process {process.pid} ({process.comm}) ended while it was looked at"
    return LocktopError(": ".join([f"cannot tell whether there is a deadlock: {ended}", *told]))


def exit_status(snapshot: Snapshot, potential: bool = False) -> int:
    """1 deadlocked, 2 when one could have been missed, else 0; with ``potential`` 1 also for one
    that could be."""
    from locktop.collector.export.text import lock_order
    from locktop.collector.format import verdict

    if verdict.is_deadlocked(snapshot) or (potential and lock_order.likely(snapshot)):
        return 1
    return 0 if verdict.is_complete(snapshot) else 2


def rendered(snapshot: Snapshot, form: str, potential: bool = False) -> bytes:
    """The finding in one of FORMATS."""
    from locktop.collector.export import files

    if form == "json":
        import json

        return files.encoded(json.dumps(as_document(snapshot, potential), indent=1) + "\n")
    if form in ("text", "line"):
        lines = as_lines(snapshot, potential)[: 1 if form == "line" else None]
        return files.encoded("".join(f"{line}\n" for line in lines))
    from locktop.collector.analysis.deadlock_report import reports
    from locktop.collector.export.graph import dot, mermaid

    render = dot.render if form == "dot" else mermaid.render
    return files.encoded(render(reports(snapshot)))


def as_document(snapshot: Snapshot, potential: bool = False) -> dict[str, Any]:
    """The finding, with the deadlocks and what they refer to as in a snapshot, and "reports": one
    for each deadlock. With ``potential`` also _ORDER_KEYS, as in a snapshot."""
    from locktop.collector.analysis.deadlock_report import reports
    from locktop.collector.export import deadlock_json
    from locktop.collector.export.snapshot_codec import document
    from locktop.collector.format import verdict

    whole = document(snapshot)
    tids = {edge.tid for deadlock in snapshot.deadlocks for edge in deadlock.cycle}
    locks = set(snapshot.deadlocked)
    stacks = {str(edge.stack) for deadlock in snapshot.deadlocks for edge in deadlock.cycle}
    stacks |= {
        str(lock.holder_activity.stack)
        for lock in snapshot.locks
        if lock.id in locks and lock.holder_activity is not None
    }
    orders = snapshot.lock_order if potential else ()
    locks |= {lock for cycle in orders for lock in cycle.locks}
    stacks |= {str(edge.stack) for cycle in orders for edge in cycle.edges}
    return {
        "format": "locktop.check",
        "version": 1,
        "taken_at": whole["taken_at"],
        "host": whole["host"],
        "process": whole["process"],
        "deadlocked": verdict.is_deadlocked(snapshot),
        "complete": verdict.is_complete(snapshot),
        "finding": _finding(snapshot, potential),
        "deadlocks": whole["deadlocks"],
        **({key: whole[key] for key in _ORDER_KEYS} if potential else {}),
        "reports": [deadlock_json.document(report) for report in reports(snapshot)],
        "threads": [thread for thread in whole["threads"] if thread["tid"] in tids],
        "locks": [lock for lock in whole["locks"] if lock["id"] in locks],
        "stacks": {key: stack for key, stack in whole["stacks"].items() if str(key) in stacks},
    }


def _finding(snapshot: Snapshot, potential: bool) -> str:
    from locktop.collector.export.text import lock_order
    from locktop.collector.format import verdict

    if potential and lock_order.likely(snapshot) and not verdict.is_deadlocked(snapshot):
        return lock_order.headline(snapshot)
    return verdict.line(snapshot)


def as_lines(snapshot: Snapshot, potential: bool = False) -> list[str]:
    """The finding in one line, and below it the report of each deadlock, with ``potential`` also
    of those that could be."""
    from locktop.collector.analysis.deadlock_report import reports
    from locktop.collector.export.text import deadlock, lock_order
    from locktop.collector.format.wrap import wrapped

    lines = [_finding(snapshot, potential)]
    for report in reports(snapshot):
        told = deadlock.lines(report)
        lines += ["", *(part for line in told for part in wrapped(line, _width()))]
    orders = list(lock_order.lines(snapshot)) if potential else []
    if orders:
        lines += ["", *(part for line in orders for part in wrapped(line, _width()))]
    return lines


def _width() -> int:
    """Of text: the terminal's, or enough for a ticket."""
    return max(60, shutil.get_terminal_size().columns) if sys.stdout.isatty() else 100
