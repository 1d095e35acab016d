"""``locktop timeline``: what each thread did when, as text."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.tui.commands.options import (
    add_pid_or,
    add_scan_options,
    attached,
    seconds,
)
from locktop.tui.commands.output import add_output, destination, text_width, write
from locktop.tui.commands.recorded import add_span, opened, refuse_core

if TYPE_CHECKING:
    from locktop.collector.recording.moments import Moments

NAME = "timeline"
GROUP = "look"
HELP = "what each thread did when, and who woke whom"
DESCRIPTION = """\
Shows for each thread when it ran, waited for which lock, held a lock or was idle, then the longest
waits with their stacks, and which release ended each wait.

With -p PID the command watches the process for the time of -d. FILE is a recording.

The times of --from and --to are as for `locktop snapshot`: 12:03:04, -35s before the end, +10m
after the begin, alert:2. `locktop replay FILE` shows the same on the screen, with key T."""

_MIN_COLUMNS, _MAX_COLUMNS = 60, 100_000
#: How long a process is watched, seconds.
_WATCHED_S = 5.0


def _columns(text: str) -> int:
    if not re.fullmatch(r"\d{1,6}", text) or not _MIN_COLUMNS <= int(text) <= _MAX_COLUMNS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of columns from {_MIN_COLUMNS} to {_MAX_COLUMNS}"
        )
    return int(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_pid_or(parser)
    parser.add_argument("file", nargs="?", metavar="FILE", help="or a recording")
    parser.add_argument(
        "-d", "--duration", type=seconds, metavar="SECONDS", help="how long to watch (default 5)"
    )
    add_span(parser, "leave out the time before T", "leave out the time after T")
    parser.add_argument(
        "--width", type=_columns, metavar="N", help="columns of the text (default: the terminal's)"
    )
    add_scan_options(parser)
    add_output(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Write the time line."""
    from locktop.collector.recording.chosen_moment import span_ns
    from locktop.collector.recording.time_lines import TimeLineReader
    from locktop.collector.render.files import encoded
    from locktop.collector.render.text import timeline

    if (arguments.pid is None) == (arguments.file is None):
        raise LocktopError("timeline needs one of -p PID and FILE")
    if arguments.file is not None and arguments.duration is not None:
        raise LocktopError("-d needs -p PID; a recording has --from and --to")
    if arguments.file is not None:
        refuse_core(arguments.file)
    path = destination(arguments)
    with _past(arguments) as moments:
        from_ns, to_ns = span_ns(moments, arguments.begin, arguments.end)
        reader = TimeLineReader(moments, takes_counters=True)
        if arguments.begin is None:
            # A long wait from before the first snapshot is part of the time line.
            from_ns = min(from_ns, reader.bounds()[0])
        time_line = reader.read(from_ns, to_ns)
    text = timeline.render(time_line, arguments.width or text_width())
    write(encoded(text), path, arguments)
    return 0


@contextmanager
def _past(arguments: argparse.Namespace) -> Iterator[Moments]:
    """Watch the process, or open the recording."""
    if arguments.file is None:
        yield _watch(arguments)
        return
    with opened(arguments.file) as recording:
        yield recording


def _watch(arguments: argparse.Namespace) -> Moments:
    """Watch a process, and return what it did."""
    from locktop.collector.recording.watched_past import watch

    with closing(attached(arguments.pid, arguments)) as source:
        return watch(source, arguments.duration or _WATCHED_S)
