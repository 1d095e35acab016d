"""``locktop snapshot``: one look at a process, into a file or a pipe."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

from locktop.tui.commands.options import add_pid, seconds

NAME = "snapshot"
HELP = "one look at a process, as JSON, msgpack or text"
DESCRIPTION = """\
Takes one look at a process and writes it out. Figures cover the process since it started; with
-d there is "interval" beside them, with the part that fell into those seconds."""

FORMATS = ("json", "msgpack", "text")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_pid(parser)
    parser.add_argument(
        "-d", "--duration", type=seconds, metavar="SECONDS", help="look again after so long"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="a new file; - is the output, as by default"
    )
    parser.add_argument("--force", action="store_true", help="write over FILE if it is one")
    parser.add_argument("--format", choices=FORMATS, default="json", help="default json")


def execute(arguments: argparse.Namespace) -> int:
    """Take it and write it."""
    from locktop.collector.attach import attach
    from locktop.collector.errors import LocktopError
    from locktop.tui import saving

    if arguments.output == "":
        raise LocktopError("-o needs the name of a file, or - for the output")
    path = Path(arguments.output) if arguments.output not in (None, "-") else None
    if path is None and arguments.format == "msgpack" and sys.stdout.isatty():
        raise LocktopError("msgpack is not for a terminal; give -o FILE or a pipe")
    reason = saving.why_not(path, arguments.force) if path is not None else None
    if reason is not None:
        raise LocktopError(reason)
    source = attach(arguments.pid)
    try:
        before = source.look() if arguments.duration else None
        if arguments.duration:
            time.sleep(arguments.duration)
        snapshot = source.look(resolve=True)
    finally:
        source.close()
    data = saving.render(snapshot, arguments.format, before, _width())
    if path is None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return 0
    try:
        saving.write_file(path, data, replace=arguments.force)
    except saving.NotWrittenError as error:
        raise LocktopError(str(error)) from None
    return 0


def _width() -> int:
    """Of text: the terminal's, or enough for a ticket."""
    return max(60, shutil.get_terminal_size().columns) if sys.stdout.isatty() else 100
