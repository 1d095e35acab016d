"""``locktop report``: an incident as one HTML file."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from locktop.collector.errors import LocktopError
from locktop.tui.commands import options, recorded, section_options
from locktop.tui.commands.output import add_output, destination, write

if TYPE_CHECKING:
    from locktop.collector.extensions.report.incident import Incident
    from locktop.collector.recording.chosen_moment import Span

NAME = "report"
GROUP = "hand over"
HELP = "an incident as one HTML file, for people without locktop"
DESCRIPTION = """\
Writes one HTML file that loads nothing: what happened, who waits for whom, the waits over time with
their callers, the locks and threads, the deadlocks and patterns with advice, and the stacks.

With -p PID the command watches the process for the time of -d. FILE is a recording, or a saved
snapshot, which has no waits over time. Of a recording the report is about all of it, or the time up
to --at T, or the span of --from T and --to T. Then the figures are those of `locktop snapshot` with
the same options."""

#: How long a process is watched, seconds.
_WATCHED_S = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    recorded.add_file(parser, "or a recording, or a saved snapshot")
    parser.add_argument(
        "-d",
        "--duration",
        type=options.seconds,
        metavar="SECONDS",
        help="how long to watch (default 5)",
    )
    section_options.add(parser)
    options.add_scan_options(parser)
    add_output(parser)
    options.add_suppressions(parser)
    # The options that add a section ask for this one of `locktop snapshot`, too.
    parser.set_defaults(session=False)


def execute(arguments: argparse.Namespace) -> int:
    """Write the report."""
    from locktop.collector.extensions.report import page

    recorded.check_use(arguments, NAME)
    section_options.check(arguments)
    path = destination(arguments)
    if path is None and sys.stdout.isatty():
        raise LocktopError("a report is not for a terminal; give -o FILE or a pipe")
    write(page.render(_incident(arguments)), path, arguments)
    return 0


def _incident(arguments: argparse.Namespace) -> Incident:
    if arguments.file is None:
        return _watch_process(arguments)
    if recorded.is_recording(arguments.file):
        return _read_recording(arguments)
    from locktop.collector.extensions.report.incident import Incident

    return Incident(_chosen_span(recorded.scanned(arguments), arguments))


def _chosen_span(span: Span, arguments: argparse.Namespace, **changes: Any) -> Span:
    """Return a span without suppressed potential deadlocks, and with changes of its snapshot."""
    from msgspec.structs import replace

    from locktop.collector.config import suppressions

    snapshot = replace(span.snapshot, **changes)
    return replace(span, snapshot=suppressions.apply(snapshot, options.suppressions(arguments)))


def _read_recording(arguments: argparse.Namespace) -> Incident:
    """Read a recording, with the sections that options add."""
    from msgspec.structs import replace

    from locktop.collector.extensions.report.past_incident import past_incident
    from locktop.collector.recording.chosen_moment import span_ns

    with recorded.opened(arguments.file) as recording:
        span = recorded.recorded_span(recording, arguments)
        begin = arguments.begin if recorded.has_span(arguments) else None
        end = arguments.at if arguments.at is not None else arguments.end
        from_ns, to_ns = span_ns(recording, begin, end)
        begin_ns = from_ns if begin is not None else None
        incident = past_incident(recording, span, begin_ns, to_ns)
    for option in section_options.chosen_sources(arguments):
        span = replace(span, snapshot=option.from_recording(span.snapshot, arguments))
    notes = (*incident.notes, *filter(None, [arguments.announced]))
    return replace(incident, span=_chosen_span(span, arguments, source="recording"), notes=notes)


def _watch_process(arguments: argparse.Namespace) -> Incident:
    """Watch a process, then make the sections that options add."""
    from locktop.collector.extensions.report.past_incident import past_incident
    from locktop.collector.recording.chosen_moment import span_between
    from locktop.collector.recording.watched_past import watch

    source = options.attached(arguments.pid, arguments)
    section_options.want_sections(source, arguments)
    try:
        source.scan(resolve=True)  # the names first: they may take long
        past = watch(source, arguments.duration or _WATCHED_S)
        sections = dict(past.snapshot_at(past.times_ns()[-1]).sections)
        for option in section_options.chosen_sources(arguments):
            sections |= option.from_process(source, arguments).sections
    finally:
        source.close()
    span = span_between(past, None, None)
    incident = past_incident(past, span, None, past.times_ns()[-1])
    from msgspec.structs import replace

    return replace(incident, span=_chosen_span(span, arguments, sections=sections))
