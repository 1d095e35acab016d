"""``locktop export``: the waits in the formats of other tools."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.export.export_formats import EXPORT_FORMATS
from locktop.tui.commands import options, recorded
from locktop.tui.commands.options import add_scan_options, attached, seconds
from locktop.tui.commands.output import add_output, destination, write

if TYPE_CHECKING:
    from locktop.collector.extensions.export.export_formats import ExportFormat
    from locktop.collector.extensions.export.export_input import ExportInput
    from locktop.collector.extensions.export.trace_parts import TracePart
    from locktop.collector.model import Snapshot
    from locktop.collector.recording.moments import Moments

NAME = "export"
GROUP = "hand over"
HELP = "the waits in the formats of other tools"
DESCRIPTION = """\
Writes waits, locks and threads for another tool: a trace, a profile, a table or a graph.

FILE is a recording or a saved snapshot. A snapshot has its newest waits alone. Of a process
without -d, profiles have the waits since it started, and tables and graphs have its present state;
traces watch it for 5 s. With -d all of them have what happened in that time.

{formats}

perfetto and parquet need further packages: pip install 'locktop[export]'."""

#: How long a process is watched for single waits, seconds.
_WATCHED_S = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    listed = "\n".join(f"  {form.name:<12} {form.about}" for form in EXPORT_FORMATS.values())
    parser.description = DESCRIPTION.format(formats=listed)
    recorded.add_file(parser, "or a recording, or a saved snapshot", end_option="--until")
    parser.add_argument(
        "--to", required=True, choices=tuple(EXPORT_FORMATS), metavar="FORMAT", help="the format"
    )
    parser.add_argument(
        "-d", "--duration", type=seconds, metavar="SECONDS", help="watch the process for so long"
    )
    parser.add_argument(
        "--weight",
        choices=("wait", "blame"),
        default="wait",
        help="of a profile: the stacks that waited (default), or those that had the lock",
    )
    parser.add_argument(
        "--idle", action="store_true", help="profiles and tables also have waits for work"
    )
    add_scan_options(parser)
    add_output(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Write the file."""
    recorded.check_use(arguments, NAME)
    form = EXPORT_FORMATS[arguments.to]
    path = destination(arguments)
    if path is None and form.is_binary and sys.stdout.isatty():
        raise LocktopError(f"{form.name} is not for a terminal; give -o FILE or a pipe")
    lost = _Losses()
    with _input(arguments, form, lost) as export_input:
        write(form.pieces(export_input), path, arguments)
    if lost.count:
        print(f"locktop: {lost.count:,} records were overwritten unread: waits are missing",
              file=sys.stderr)  # fmt: skip
    return 0


class _Losses:
    """The records that a trace lacks."""

    def __init__(self) -> None:
        self.count = 0

    def counted(self, parts: Iterable[TracePart]) -> Iterator[TracePart]:
        for part in parts:
            self.count += part.lost_records
            yield part


@contextmanager
def _input(
    arguments: argparse.Namespace, form: ExportFormat, lost: _Losses
) -> Iterator[ExportInput]:
    if arguments.file is None:
        yield _process_input(arguments, form, lost)
    elif recorded.is_recording(arguments.file):
        with recorded.opened(arguments.file) as recording:
            yield _recording_input(recording, arguments, lost)
    else:
        from locktop.collector.extensions.export.trace_parts import part_of_snapshot

        snapshot = recorded.scanned(arguments).snapshot
        yield _export_input(snapshot, lambda: iter([part_of_snapshot(snapshot)]), arguments)


def _export_input(
    snapshot: Snapshot,
    parts: Callable[[], Iterator[TracePart]],
    arguments: argparse.Namespace,
    **more: Any,
) -> ExportInput:
    from locktop.collector.extensions.export.export_input import ExportInput
    from locktop.collector.extensions.export.wait_samples import SampleWeight

    weight = SampleWeight(arguments.weight)
    return ExportInput(snapshot, parts, weight=weight, with_idle=arguments.idle, **more)


def _recording_input(
    recording: Moments, arguments: argparse.Namespace, lost: _Losses
) -> ExportInput:
    from locktop.collector.extensions.export.trace_parts import parts
    from locktop.collector.recording import chosen_moment

    recorded.announce(recording, arguments)
    if arguments.announced:
        print(arguments.announced, file=sys.stderr)
    if recorded.has_span(arguments):
        span = chosen_moment.span_between(recording, arguments.begin, arguments.end)
        from_ns, to_ns = chosen_moment.span_ns(recording, arguments.begin, arguments.end)
        snapshot = span.figures()
    else:
        snapshot = chosen_moment.snapshot_at(recording, arguments.at)
        from_ns, to_ns = chosen_moment.span_ns(recording, None, arguments.at)
    if arguments.idle_matching:
        snapshot = chosen_moment.classified(snapshot, options.rules(arguments))
    is_whole = arguments.begin is None
    return _export_input(
        snapshot,
        lambda: lost.counted(parts(recording, from_ns, to_ns, with_earlier=is_whole)),
        arguments,
        is_recorded=True,
        duration_ns=to_ns - from_ns,
    )


def _process_input(arguments: argparse.Namespace, form: ExportFormat, lost: _Losses) -> ExportInput:
    from locktop.collector.extensions.export.build_ids import build_ids
    from locktop.collector.extensions.export.export_formats import ExportContent
    from locktop.collector.extensions.export.trace_parts import parts
    from locktop.collector.recording import chosen_moment, watched_past

    with closing(attached(arguments.pid, arguments)) as source:
        ids = build_ids(arguments.pid)
        if form.content is ExportContent.WAITS:
            past = watched_past.watch(source, arguments.duration or _WATCHED_S)
            times = past.times_ns()
            snapshot = past.snapshot_at(times[-1])
            return _export_input(
                snapshot,
                lambda: lost.counted(parts(past, times[0], times[-1], with_earlier=True)),
                arguments,
                build_ids=ids,
            )
        before = None
        if arguments.duration:
            source.scan(resolve=True)
            before = source.scan()
            time.sleep(arguments.duration)
        snapshot = source.scan(resolve=True)
        if before is not None:
            snapshot = chosen_moment.span_of(before, snapshot).figures()
        return _export_input(snapshot, lambda: iter(()), arguments, build_ids=ids)
