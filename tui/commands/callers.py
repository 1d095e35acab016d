"""``locktop callers``: where the waiting comes from, out of a process or out of a file."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from locktop.tui.commands.options import add_pid_or

if TYPE_CHECKING:
    from locktop.collector.profile import Profile

NAME = "callers"
HELP = "where the waiting comes from: callers and callees"
DESCRIPTION = """\
Shows where the waiting comes from: as a tree from the entry of each thread down to the locks, or
with --function as a butterfly of one function's callers and callees.

FILE is a snapshot that was saved (JSON or msgpack), or a caller/callee summary report of Visual
Studio's profiler (CSV)."""

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
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="a new file; - is the output, as by default"
    )
    parser.add_argument("--force", action="store_true", help="write over FILE if it is one")


def execute(arguments: argparse.Namespace) -> int:
    """Show it, or write it."""
    from locktop.collector.errors import LocktopError

    if (arguments.pid is None) == (arguments.file is None):
        raise LocktopError("callers needs one of -p PID and FILE")
    return _write(arguments)


def _write(arguments: argparse.Namespace) -> int:
    from locktop.collector.errors import LocktopError
    from locktop.tui import saving

    if arguments.output == "":
        raise LocktopError("-o needs the name of a file, or - for the output")
    path = Path(arguments.output) if arguments.output not in (None, "-") else None
    reason = saving.why_not(path, arguments.force) if path is not None else None
    if reason is not None:
        raise LocktopError(reason)
    data = saving.encoded(_rendered(_profile(arguments), arguments))
    if path is None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return 0
    try:
        saving.write_file(path, data, replace=arguments.force)
    except saving.NotWrittenError as error:
        raise LocktopError(str(error)) from None
    return 0


def _profile(arguments: argparse.Namespace) -> Profile:
    from locktop.collector import profile

    if arguments.file is not None:
        return profile.read(arguments.file)
    from locktop.collector.attach import attach

    source = attach(arguments.pid)
    try:
        return profile.SnapshotProfile(source.look(resolve=True))
    finally:
        source.close()


def _rendered(found: Profile, arguments: argparse.Namespace) -> str:
    from locktop.collector.errors import LocktopError
    from locktop.collector.profile import step_named, weight_named

    weight = weight_named(found, arguments.weight)
    name = arguments.function
    step = step_named(found.tree(weight.name), name) if name is not None else None
    if arguments.format == "csv":
        if found.estimate:
            raise LocktopError(f"{arguments.file} is such a report already")
        if step is not None:
            raise LocktopError("such a report has all functions; leave --function out")
        from locktop.collector.export import vs_csv

        return vs_csv.render(found, weight, arguments.idle)
    if arguments.format == "json":
        import json

        from locktop.collector.export.callers_json import document

        whole = document(found, weight, arguments.idle, step)
        return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
    from locktop.collector.export import callers_text

    if step is None:
        return callers_text.render_tree(found, weight, arguments.idle, _width())
    return callers_text.render_butterfly(found, weight, step, arguments.idle, _width())


def _width() -> int:
    """Of text: the terminal's, or enough for a ticket."""
    return max(60, shutil.get_terminal_size().columns) if sys.stdout.isatty() else 100
