"""``locktop snapshot``: one scan of a process, into a file or a pipe."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from locktop.collector.render.formats import SNAPSHOT_FORMATS
from locktop.tui.commands import options, recorded
from locktop.tui.commands.inside_profile import add_frequency, check_samples, profiled
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
from locktop.tui.extension import SnapshotOption, screen_extensions

if TYPE_CHECKING:
    from locktop.collector.model import Snapshot
    from locktop.tui.extension_parts import SnapshotSource

NAME = "snapshot"
HELP = "one scan of a process or of a recording, as JSON, msgpack or text"
DESCRIPTION = """\
Scans a process once and writes a snapshot. The figures are those since the process started. With
-d there is "interval" beside them, with the part of these seconds.

FILE is a recording, or a saved snapshot to be written in another format. Of a recording the command
writes the last snapshot, or the one at --at T. With --from T and --to T there is "interval" too,
with the part of that span."""


def _options() -> dict[str, SnapshotOption]:
    """The options of extensions by name."""
    return {
        extension.name: extension.snapshot_option
        for extension in screen_extensions()
        if extension.snapshot_option is not None
    }


def _chosen_sources(arguments: argparse.Namespace) -> list[SnapshotSource]:
    return [
        option.load()
        for name, option in _options().items()
        if option.load is not None and getattr(arguments, name)
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    recorded.add_file(parser, "or a recording, or a saved snapshot")
    parser.add_argument(
        "-d", "--duration", type=seconds, metavar="SECONDS", help="scan again after this time"
    )
    recorded.add_session(parser, 'with "interval" of the session')
    parser.add_argument(
        "--inside",
        action="store_true",
        help="with -d: sample what runs while threads hold contended locks",
    )
    for name, option in _options().items():
        parser.add_argument(f"--{name}", action="store_true", help=option.help)
    add_frequency(parser)
    add_scan_options(parser)
    parser.add_argument(
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
    from locktop.collector.errors import LocktopError

    recorded.check_use(arguments, NAME)
    check_samples(arguments, {"hz": "--hz"})
    if arguments.inside and not arguments.duration:
        raise LocktopError("--inside needs -p PID and -d SECONDS")
    chosen = _chosen_sources(arguments)
    if len(chosen) > 1:
        raise LocktopError("several measurements at once: make a snapshot for each")
    for option in chosen:
        option.check(arguments)
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
    for name, snapshot_option in _options().items():
        if snapshot_option.load is None:
            source.want_section(name, getattr(arguments, name))
    try:
        before = None
        if arguments.duration:
            # Only a first scan with all names reads Python's waits several times to name a lock.
            # These readings may take long, so the interval begins afterwards.
            source.scan(resolve=True)
            before = source.scan()
            if arguments.inside:
                return profiled(source, arguments.duration, arguments.hz), before
        for option in _chosen_sources(arguments):
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
    for option in _chosen_sources(arguments):
        snapshot = option.from_recording(snapshot, arguments)
    return snapshot, span.before
