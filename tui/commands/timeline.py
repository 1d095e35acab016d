"""``locktop timeline``: what each thread did when, as text."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from locktop.tui.commands.options import (
    BEFORE_THE_END,
    add_pid_or,
    add_scan_options,
    attached,
    seconds,
)
from locktop.tui.commands.output import add_output, destination, text_width, write

if TYPE_CHECKING:
    from locktop.collector.recording.moments import Moments

NAME = "timeline"
HELP = "what each thread did when, and who woke whom"
DESCRIPTION = """\
Shows for each thread when it ran, waited for which lock, held a lock or was idle, then the longest
waits with their stacks, and which release ended each wait.

With -p PID the command watches the process for the time of -d. FILE is a recording.

The times of --from and --to are as for `locktop snapshot`: 12:03:04, -35s before the end, +10m
after the begin, alert:2. `locktop replay FILE` shows the same on the screen, with key T."""

#: Seconds between two scans: ring records are exact, and samples are as exact as this.
_INTERVAL_S = 0.1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_pid_or(parser)
    parser.add_argument("file", nargs="?", metavar="FILE", help="or a recording")
    parser.add_argument(
        "-d", "--duration", type=seconds, default=5.0, metavar="SECONDS",
        help="how long to watch (default 5)",
    )  # fmt: skip
    parser.add_argument("--from", dest="begin", metavar="T", help="leave out the time before T")
    parser.add_argument("--to", dest="end", metavar="T", help="leave out the time after T")
    parser.add_argument(
        "--width", type=int, metavar="N", help="columns of the text (default: the terminal's)"
    )
    add_scan_options(parser)
    add_output(parser)
    # Without this argparse takes -35s for an option.
    parser._negative_number_matcher = BEFORE_THE_END


def execute(arguments: argparse.Namespace) -> int:
    """Write the time line."""
    from locktop.collector.errors import LocktopError
    from locktop.collector.export.rendered_files import encoded
    from locktop.collector.export.text import timeline
    from locktop.collector.recording.chosen_moment import span_ns
    from locktop.collector.recording.time_lines import TimeLineReader

    if (arguments.pid is None) == (arguments.file is None):
        raise LocktopError("timeline needs one of -p PID and FILE")
    if arguments.width is not None and arguments.width < 60:
        raise LocktopError("--width: a time line needs 60 columns")
    path = destination(arguments)
    with _past(arguments) as moments:
        from_ns, to_ns = span_ns(moments, arguments.begin, arguments.end)
        found = TimeLineReader(moments).read(from_ns, to_ns)
    text = timeline.render(found, arguments.width or text_width())
    write(encoded(text), path, arguments)
    return 0


@contextmanager
def _past(arguments: argparse.Namespace) -> Iterator[Moments]:
    """Watch the process, or open the recording; tell of its damage if the rest could be read."""
    if arguments.file is None:
        yield _watched(arguments)
        return
    from locktop.collector.recording.segments import open_recording

    recording = open_recording(Path(arguments.file))
    try:
        yield recording
    finally:
        recording.close()
    if recording.damage:
        print(f"locktop: {arguments.file}: {recording.damage}", file=sys.stderr)


def _watched(arguments: argparse.Namespace) -> Moments:
    """Watch a process, and return what it did."""
    from locktop.collector.recording.history import History

    source = attached(arguments.pid, arguments)
    try:
        source.keep_slots()
        history = History(span_s=arguments.duration + 60)
        until = time.monotonic() + arguments.duration
        while True:
            is_last = time.monotonic() >= until
            # A scan copies the memory first, and looks for names afterwards.
            time_ns = time.time_ns()
            snapshot = source.scan(resolve=is_last)
            history.add(snapshot, time_ns, source.take_slots())
            if is_last or snapshot.ended:
                return history
            time.sleep(max(0.0, min(_INTERVAL_S, until - time.monotonic())))
    finally:
        source.close()
