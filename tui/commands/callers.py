"""``locktop callers``: where the waiting comes from, out of a process or out of a file."""

from __future__ import annotations

import argparse
import shutil
import sys
from typing import TYPE_CHECKING

from locktop.tui.commands.options import (
    add_looking,
    add_pid_or,
    add_screen,
    attached,
    has_terminal,
    rules,
)
from locktop.tui.commands.output import add_output, destination, write

if TYPE_CHECKING:
    from locktop.collector.profile.profile import Profile

NAME = "callers"
HELP = "where the waiting comes from: callers and callees"
DESCRIPTION = """\
Shows where the waiting comes from: as a tree from the entry of each thread down to the locks, or
with --function as a butterfly of one function's callers and callees.

FILE is a snapshot that was saved (JSON or msgpack), or a caller/callee summary report of Visual
Studio's profiler (CSV). On a terminal the view opens on the screen, unless --format, --function or
-o is given; elsewhere it is printed as text."""

FORMATS = ("text", "json", "csv")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_pid_or(parser)
    parser.add_argument("file", nargs="?", metavar="FILE", help="or what was saved")
    parser.add_argument(
        "--weight",
        metavar="NAME",
        help="what counts: wait (time, the default), count or blame; of a report what it has",
    )
    parser.add_argument(
        "--idle", action="store_true", help="also waits for work: conditions, semaphores, joins"
    )
    parser.add_argument(
        "--function", metavar="NAME", help="this one's callers and callees; a part of it will do"
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="text (the default), json, or csv: a caller/callee summary report",
    )
    add_looking(parser)
    add_output(parser)
    add_screen(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Show it, or write it."""
    from locktop.collector.errors import LocktopError

    if (arguments.pid is None) == (arguments.file is None):
        raise LocktopError("callers needs one of -p PID and FILE")
    asked = (arguments.format, arguments.output, arguments.function)
    if all(one is None for one in asked) and has_terminal():
        return _show(arguments)
    return _write(arguments)


def _show(arguments: argparse.Namespace) -> int:
    from locktop.collector.export.open_profile import open_profile
    from locktop.collector.profile import profile

    if arguments.file is None:
        from locktop.tui.commands.attach import watch

        weight = profile.weight_of(profile.SNAPSHOT_WEIGHTS, arguments.weight)
        return watch(attached(arguments.pid, arguments), arguments, (weight.name, arguments.idle))
    found = open_profile(arguments.file, rules(arguments))
    weight = profile.weight_of(found.weights, arguments.weight)
    from locktop.tui.app import CallTreeApp, run_app

    return run_app(CallTreeApp(found, arguments.theme, weight=weight, idle=arguments.idle))


def _write(arguments: argparse.Namespace) -> int:
    path = destination(arguments)
    write(_rendered(_profile(arguments), arguments), path, arguments)
    return 0


def _profile(arguments: argparse.Namespace) -> Profile:
    from locktop.collector.export.open_profile import open_profile
    from locktop.collector.profile import profile

    if arguments.file is not None:
        return open_profile(arguments.file, rules(arguments))

    source = attached(arguments.pid, arguments)
    try:
        return profile.SnapshotProfile(source.scan(resolve=True))
    finally:
        source.close()


def _rendered(found: Profile, arguments: argparse.Namespace) -> bytes:
    from locktop.collector.errors import LocktopError
    from locktop.collector.export import files
    from locktop.collector.profile.profile import step_named, weight_of

    weight = weight_of(found.weights, arguments.weight)
    name = arguments.function
    step = step_named(found.tree(weight.name), name) if name is not None else None
    if arguments.format == "csv":
        if found.estimate:
            raise LocktopError(f"{arguments.file} is such a report already")
        if step is not None:
            raise LocktopError("such a report has all functions; leave --function out")
        from locktop.collector.export import vsperf_csv

        return files.encoded(vsperf_csv.render(found, weight, arguments.idle))
    form = arguments.format or "text"
    return files.call_tree_file(found, weight, arguments.idle, step, form, _width())


def _width() -> int:
    """Of text: the terminal's, or enough for a ticket."""
    return max(60, shutil.get_terminal_size().columns) if sys.stdout.isatty() else 100
