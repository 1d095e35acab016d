"""``locktop snapshot``: one scan of a process, into a file or a pipe."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from locktop.collector.export.formats import SNAPSHOT_FORMATS
from locktop.tui.commands import options, predictions, recorded
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

if TYPE_CHECKING:
    from locktop.collector.model import Snapshot
    from locktop.collector.sources.attach import Source

NAME = "snapshot"
HELP = "one scan of a process or of a recording, as JSON, msgpack or text"
DESCRIPTION = """\
Scans a process once and writes a snapshot. The figures are those since the process started. With
-d there is "interval" beside them, with the part of these seconds.

FILE is a recording, or a saved snapshot to be written in another format. Of a recording the command
writes the last snapshot, or the one at --at T. With --from T and --to T there is "interval" too,
with the part of that span."""

#: Seconds between the recording and the snapshot. The shares of a snapshot are of the time since
#: the scan before. The last two scans of a recording are only some milliseconds apart.
_SHARES_S = 1.0


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
    parser.add_argument(
        "--whatif",
        action="store_true",
        help="with the gain of likely changes: records all holds for 10 s, or for -d SECONDS",
    )
    add_frequency(parser)
    add_scan_options(parser)
    parser.add_argument("--calls", action="store_true", help="with the function calls")
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
        from locktop.collector.export import snapshot_reference

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
    _check_whatif(arguments)
    path = destination(arguments)
    form = SNAPSHOT_FORMATS[arguments.format]
    if path is None and form.is_binary and sys.stdout.isatty():
        raise LocktopError(f"{form.name} is not for a terminal; give -o FILE or a pipe")
    left_out = options.suppressions(arguments)
    if arguments.file is not None:
        found, before = _read(arguments)
    elif arguments.session:
        span = recorded.of_session(arguments)
        found, before = span.snapshot, span.before
    else:
        found, before = _scanned(arguments)
    snapshot = suppressions.apply(found, left_out)
    page = form.render(snapshot, before, text_width(), arguments.idle)
    write(announced(page, form, arguments), path, arguments)
    return 0


def _check_whatif(arguments: argparse.Namespace) -> None:
    """Raise LocktopError if other options do not go with --whatif."""
    from locktop.collector.errors import LocktopError

    if not arguments.whatif:
        return
    if arguments.inside or arguments.session:
        raise LocktopError("--whatif excludes --inside and --session: make two snapshots")
    if arguments.file is not None and not recorded.is_recording(arguments.file):
        raise LocktopError("--whatif needs -p PID or a recording; a saved snapshot stays as it is")
    predictions.check_duration(arguments.duration)


def _scanned(arguments: argparse.Namespace) -> tuple[Snapshot, Snapshot | None]:
    """Return the snapshot of a process, and the one before it with -d."""
    from locktop.collector.recording import chosen_moment

    source = attached(arguments.pid, arguments)
    source.want_calls(arguments.calls)
    try:
        before = None
        if arguments.duration:
            # Only a first scan with all names reads Python's waits several times to name a lock.
            # These readings may take long, so the interval begins afterwards.
            source.scan(resolve=True)
            before = source.scan()
            if arguments.inside:
                return profiled(source, arguments.duration, arguments.hz), before
        if arguments.whatif:
            return _with_whatif(source, arguments), before
        if arguments.duration:
            time.sleep(arguments.duration)
        found = source.scan(resolve=True)
        if before is None:
            return found, None
        span = chosen_moment.span_of(before, found)
        return span.snapshot, span.before
    finally:
        source.close()


def _with_whatif(source: Source, arguments: argparse.Namespace) -> Snapshot:
    from msgspec.structs import replace

    from locktop.collector.recording.whatif_question import WantedChanges

    taken = []

    def scan() -> None:
        time.sleep(_SHARES_S)
        taken.append(source.scan(resolve=True))

    # The scan is before the replays, so that the interval has no time of them.
    duration_s = arguments.duration
    found = predictions.of_process(source, arguments.pid, duration_s, WantedChanges(), scan)
    return replace(taken[0], whatif=found.whatif)


def _read(arguments: argparse.Namespace) -> tuple[Snapshot, Snapshot | None]:
    """Return the snapshot of a file, and the one at the begin of a span."""
    from msgspec.structs import replace

    span = recorded.scanned(arguments)
    if not recorded.is_recording(arguments.file):
        return span.snapshot, None
    # A reader of the document may ask whether the process still exists.
    found = replace(span.snapshot, source="recording")
    if arguments.whatif:
        from locktop.collector.recording.whatif_question import WantedChanges

        answered = predictions.of_file(arguments, WantedChanges())
        found = replace(found, whatif=answered.whatif)
    return found, span.before
