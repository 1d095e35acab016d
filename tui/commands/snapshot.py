"""``locktop snapshot``: one scan of a process, into a file or a pipe."""

from __future__ import annotations

import argparse
import sys
import time

from locktop.tui.commands import options
from locktop.tui.commands.options import (
    add_pid,
    add_scan_options,
    add_suppressions,
    attached,
    seconds,
)
from locktop.tui.commands.output import add_output, destination, text_width, write

NAME = "snapshot"
HELP = "one scan of a process, as JSON, msgpack or text"
DESCRIPTION = """\
Scans a process once and writes a snapshot. The figures are those since the process started. With
-d there is "interval" beside them, with the part of these seconds."""

FORMATS = ("json", "msgpack", "text")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_pid(parser)
    parser.add_argument(
        "-d", "--duration", type=seconds, metavar="SECONDS", help="scan again after this time"
    )
    add_scan_options(parser)
    parser.add_argument(
        "--schema",
        action=_PrintSchema,
        nargs=0,
        help="print the JSON Schema of a snapshot and exit; needs no -p",
    )
    add_output(parser)
    add_suppressions(parser)
    parser.add_argument("--format", choices=FORMATS, default="json", help="default json")
    parser.add_argument(
        "--idle", action="store_true", help="text also lists the threads that wait for work"
    )


class _PrintSchema(argparse.Action):
    """Prints the JSON Schema at once, as --help and --version do."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from locktop.collector.export import snapshot_reference

        sys.stdout.write(snapshot_reference.schema_text())
        parser.exit()


def execute(arguments: argparse.Namespace) -> int:
    """Take the snapshot and write it."""
    from locktop.collector.config import suppressions
    from locktop.collector.errors import LocktopError
    from locktop.collector.export import rendered_files

    path = destination(arguments)
    if path is None and arguments.format == "msgpack" and sys.stdout.isatty():
        raise LocktopError("msgpack is not for a terminal; give -o FILE or a pipe")
    left_out = options.suppressions(arguments)
    source = attached(arguments.pid, arguments)
    try:
        before = None
        if arguments.duration:
            # Only a first scan with all names reads Python's waits several times to name a lock.
            # These readings may take long, so the interval begins afterwards.
            source.scan(resolve=True)
            before = source.scan()
            time.sleep(arguments.duration)
        snapshot = suppressions.apply(source.scan(resolve=True), left_out)
    finally:
        source.close()
    page = rendered_files.snapshot_file(
        snapshot, arguments.format, before, text_width(), arguments.idle
    )
    write(page, path, arguments)
    return 0
