"""``locktop check``: whether a process is deadlocked, for probes and for CI."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.collector.render.formats import FINDING_FORMATS
from locktop.tui.commands import options, recorded
from locktop.tui.commands.options import add_scan_options, add_suppressions, attached
from locktop.tui.commands.output import (
    add_format,
    add_output,
    announced,
    destination,
    text_width,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from locktop.collector.model import Snapshot

NAME = "check"
GROUP = "look"
HELP = "whether threads are deadlocked, also by the exit status"
DESCRIPTION = """\
Scans a process twice and prints whether threads are deadlocked. The first line is the answer. A
report follows for each deadlock: which thread waits for which one, where, and what would have
avoided it. Without a deadlock a line follows for each lock that threads wait for, with its holder.

exit status: 0 no deadlock found; 1 a deadlock is certain; 2 no answer, as when the process does
not exist or ended between the two scans; 3 a deadlock is possible, or locktop cannot tell. locktop
cannot tell if threads took locks while the library was dormant. The same holds if a thread has
waited 10 s or more for a lock whose holder is not known. If the kernel does not tell since when a
thread sleeps, such a wait may have begun at any time before. Then the command scans for up to 10 s.
With --certain-only the status is 0 instead of 3: use that for health checks.

FILE is a recording, a saved snapshot or a core dump. A core does not move: a cycle of owners in it
is certain. Of a recording, the answer is about the last snapshot, or the one at --at T. With --from
T or --to T it is about the first snapshot of that span with the gravest finding.

With --potential the status is 1 too if threads took locks in different orders since the process
started, with at least medium confidence. The status is 3 if such orders were left out. That is for
tests, not for health checks: no thread hangs because of it, and the answer never changes back.
--potential=classes also reports such orders of different locks of the same classes. Their
confidence is low, so they do not change the status."""

_OF_CLASSES = "classes"
#: The values of --potential, the default first.
_POTENTIAL = ("locks", _OF_CLASSES)


#: The exit status if a deadlock is possible, or if locktop cannot tell.
DOUBTFUL = 3

#: Between the two scans, which must show the same waits.
_BETWEEN_S = 0.25
#: Scans for the stack of a wait for Python's GIL, which lasts 5 ms. On a busy host the thread then
#: waits far longer for a CPU.
_MAX_GIL_SCANS = 40
#: Scans for the stacks of waits for conditions, each of which reads stacks for some milliseconds.
_MAX_STACK_SCANS = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    recorded.add_file(parser, recorded.FILE_OR_CORE)
    add_scan_options(parser)
    add_format(parser, FINDING_FORMATS, None)
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    parser.add_argument(
        "--potential",
        nargs="?",
        choices=_POTENTIAL,
        const=_POTENTIAL[0],
        help="also report, with status 1, locks that were taken in different orders; with"
        f" ={_OF_CLASSES} also different locks of the same classes",
    )
    parser.add_argument(
        "--certain-only",
        action="store_true",
        help="status 0 instead of 3: for health checks, which must act on certain deadlocks alone",
    )
    add_suppressions(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="only the exit status")
    add_output(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Scan the process twice, report the finding, and return the exit status."""
    from locktop.collector.config import suppressions

    def report(form: str, path: Path | None) -> None:
        data = FINDING_FORMATS.render(form, snapshot, potential, text_width())
        write(announced(data, FINDING_FORMATS[form], arguments), path, arguments)

    recorded.check_use(arguments, NAME)
    form = _form(arguments)
    path = destination(arguments)
    potential = bool(arguments.potential)
    left_out = options.suppressions(arguments) if potential else ()
    if arguments.file is not None:
        every = (
            suppressions.apply(snapshot, left_out) for snapshot in recorded.snapshots(arguments)
        )
        snapshot = _gravest(every, potential)
    else:
        snapshot = suppressions.apply(_scan_twice(arguments), left_out)
    if path is not None:
        report(form, path)
    if not arguments.quiet:
        report("line" if path is not None else form, None)
    status = exit_status(snapshot, potential)
    return 0 if status == DOUBTFUL and arguments.certain_only else status


def _gravest(snapshots: Iterable[Snapshot], potential: bool) -> Snapshot:
    """Return the first snapshot with the gravest exit status, of at least one snapshot."""
    worst, gravest = None, 0
    for snapshot in snapshots:
        status = exit_status(snapshot, potential)
        if status == 1:
            return snapshot
        if worst is None or status > gravest:
            worst, gravest = snapshot, status
    assert worst is not None
    return worst


def _form(arguments: argparse.Namespace) -> str:
    form: str = arguments.format or ("json" if arguments.json else FINDING_FORMATS.default)
    if arguments.json and form != "json":
        raise LocktopError(f"--json and --format {form} are two forms; give one")
    return form


def _scan_twice(arguments: argparse.Namespace) -> Snapshot:
    """The later of two scans. Raises LocktopError if they cannot tell."""
    from locktop.collector.render.words import verdict
    from locktop.collector.sources.unnamed_waits import lacks_stacks, needs_names

    source = attached(arguments.pid, arguments, arguments.potential == _OF_CLASSES)
    try:
        first = source.scan()
        time.sleep(_BETWEEN_S)
        snapshot = source.scan()
        for _ in range(0 if arguments.certain_only else _MAX_STACK_SCANS):
            if not (snapshot.is_sampled and lacks_stacks(snapshot)):
                break
            snapshot = source.scan()
        potential = arguments.potential == _OF_CLASSES or (
            arguments.potential and snapshot.lock_order
        )
        # Lock classes, idle rules, and whether a semaphore or a futex is a lock, depend on names.
        # So do the probable holders of locks that name none.
        # To resolve names takes longer than a probe should take, so the scan does that only if
        # needed.
        if (
            is_stuck(snapshot)
            or potential
            or arguments.idle_matching
            or needs_names(arguments.pid, snapshot)
        ):
            snapshot = source.scan(resolve=True)
            for _ in range(_MAX_GIL_SCANS if verdict.may_wait_for_gil(snapshot) else 0):
                if is_stuck(snapshot) or not verdict.may_wait_for_gil(snapshot):
                    break
                snapshot = source.scan(resolve=True)
        # A probe has a time limit, and no long wait changes its status.
        if verdict.may_be_long(snapshot) and not arguments.certain_only:
            snapshot = _scanned_on(source.scan)
    finally:
        source.close()
    if snapshot.ended and not verdict.is_deadlocked(snapshot):
        raise _ended_error(snapshot, first)
    return snapshot


def is_stuck(snapshot: Snapshot) -> bool:
    """Return whether threads are deadlocked, or may be."""
    return bool(snapshot.deadlocks or snapshot.hang)


def _scanned_on(scan: Callable[..., Snapshot]) -> Snapshot:
    """Scan until each wait of an unknown holder has ended, or has lasted too long to say nothing.

    A deadlock ends the scans.

    Without the library, the beginning of a wait from before the first scan is not known.
    """
    from locktop.collector.render.words import verdict

    snapshot = scan(resolve=True)  # a wait for work is no reason to go on
    while verdict.may_be_long(snapshot) and not (snapshot.ended or snapshot.deadlocks):
        time.sleep(_BETWEEN_S)
        snapshot = scan()
    return scan(resolve=True) if verdict.unknown_waits(snapshot) else snapshot


def _ended_error(snapshot: Snapshot, first: Snapshot) -> LocktopError:
    """The error for a process that ended before two scans agreed, with the later scan's notes."""
    process = snapshot.process
    new = [note for note in snapshot.notes if note not in first.notes]
    ended = f"process {process.pid} ({process.comm}) ended during the scans"
    return LocktopError(": ".join([f"cannot tell whether there is a deadlock: {ended}", *new]))


def exit_status(snapshot: Snapshot, potential: bool = False) -> int:
    """Return 1 if a deadlock is certain, DOUBTFUL if there may be one, else 0.

    With ``potential`` a potential deadlock is status 1 too, and lock orders that are not known are
    DOUBTFUL.
    """
    from locktop.collector.render.text import lock_order
    from locktop.collector.render.words import lock_order as order_format
    from locktop.collector.render.words import verdict

    if verdict.is_deadlocked(snapshot) or (potential and lock_order.likely(snapshot)):
        return 1
    is_doubtful = verdict.is_doubtful(snapshot) or (
        potential and any(order_format.unknown(snapshot))
    )
    return DOUBTFUL if is_doubtful else 0
