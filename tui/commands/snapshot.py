"""``locktop snapshot``: one scan of a process, into a file or a pipe."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.collector.render.formats import SNAPSHOT_FORMATS
from locktop.tui.commands import options, recorded, section_options
from locktop.tui.commands.command_parser import FURTHER, group
from locktop.tui.commands.options import (
    add_scan_options,
    add_suppressions,
    attached,
    seconds,
)
from locktop.tui.commands.output import (
    add_format,
    add_output,
    announced,
    destination,
    text_width,
    write,
)

if TYPE_CHECKING:
    from locktop.collector.model import Snapshot

NAME = "snapshot"
GROUP = "keep"
HELP = "one scan of a process or of a recording, as JSON, msgpack or text"
DESCRIPTION = """\
Scans a process once and writes a snapshot. The figures are those since the process started. With
-d there is "interval" beside them, with the part of these seconds.

FILE is a recording, a core dump, or a saved snapshot to be written in another format. Of a
recording the command writes the last snapshot, or the one at --at T. With --from T and --to T there
is "interval" too, with the part of that span."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    recorded.add_file(parser, recorded.FILE_OR_CORE)
    parser.add_argument(
        "-d", "--duration", type=seconds, metavar="SECONDS", help="scan again after this time"
    )
    recorded.add_session(parser, 'with "interval" of the session')
    section_options.add(parser)
    add_scan_options(parser)
    group(parser, FURTHER).add_argument(
        "--schema",
        action=_PrintSchema,
        nargs=0,
        help="print the JSON Schema of a snapshot and exit; needs no -p",
    )
    add_output(parser)
    add_suppressions(parser)
    add_format(parser, SNAPSHOT_FORMATS, SNAPSHOT_FORMATS.default)
    parser.add_argument(
        "--idle", action="store_true", help="text also lists the threads that wait for work"
    )


class _PrintSchema(argparse.Action):
    """Prints the JSON Schema at once, as --help and --version do."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from locktop.collector.render.documents import snapshot_reference

        sys.stdout.write(snapshot_reference.schema_text())
        parser.exit()


def execute(arguments: argparse.Namespace) -> int:
    """Take the snapshot and write it."""
    from locktop.collector.config import suppressions

    recorded.check_use(arguments, NAME)
    section_options.check(arguments)
    path = destination(arguments)
    form = SNAPSHOT_FORMATS[arguments.format]
    if path is None and form.is_binary and sys.stdout.isatty():
        raise LocktopError(f"{form.name} is not for a terminal; give -o FILE or a pipe")
    left_out = options.suppressions(arguments)
    if arguments.file is not None:
        scanned, before = _read(arguments)
    elif arguments.session:
        span = recorded.session_span(arguments)
        scanned, before = span.snapshot, span.before
    else:
        scanned, before = _scan(arguments)
    snapshot = suppressions.apply(scanned, left_out)
    page = form.render(snapshot, before, text_width(), arguments.idle)
    write(announced(page, form, arguments), path, arguments)
    return 0


def _scan(arguments: argparse.Namespace) -> tuple[Snapshot, Snapshot | None]:
    """Return the snapshot of a process, and the one before it with -d."""
    from locktop.collector.recording import chosen_moment

    source = attached(arguments.pid, arguments)
    section_options.want_sections(source, arguments)
    try:
        before = None
        if arguments.duration:
            # Only a first scan with all names reads Python's waits several times to name a lock.
            # These readings may take long, so the interval begins afterwards.
            source.scan(resolve=True)
            before = source.scan()
        for option in section_options.chosen_sources(arguments):
            return option.from_process(source, arguments), before
        if arguments.duration:
            time.sleep(arguments.duration)
        scanned = source.scan(resolve=True)
        if before is None:
            return scanned, None
        span = chosen_moment.span_of(before, scanned)
        return span.snapshot, span.before
    finally:
        source.close()


def _read(arguments: argparse.Namespace) -> tuple[Snapshot, Snapshot | None]:
    """Return the snapshot of a file, and the one at the begin of a span."""
    from msgspec.structs import replace

    span = recorded.scanned(arguments)
    if not recorded.is_recording(arguments.file):
        return span.snapshot, None
    # A reader of the document may ask whether the process still exists.
    snapshot = replace(span.snapshot, source="recording")
    for option in section_options.chosen_sources(arguments):
        snapshot = option.from_recording(snapshot, arguments)
    return snapshot, span.before
