"""``locktop timeline``: what each thread did when, as text."""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from locktop.tui.commands.options import add_pid_or, add_scan_options, attached, duration
from locktop.tui.commands.output import add_output, destination, text_width, write

if TYPE_CHECKING:
    from locktop.collector.recording.moments import Moments

NAME = "timeline"
HELP = "what each thread did when, and who woke whom"
DESCRIPTION = """\
Shows for each thread when it ran, waited for which lock, held a lock or was idle, then the longest
waits with their stacks, and which release ended each wait.

With -p PID the command watches the process for the time of -d. FILE is a recording.

--from and --to take a local time of day (03:12:45.5), a time since the begin (+2.5s), or a time
before the end (-10s)."""

#: Seconds between two scans: ring records are exact, and samples are as exact as this.
_INTERVAL_S = 0.1
_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d(?:\.\d+)?))?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_pid_or(parser)
    parser.add_argument("file", nargs="?", metavar="FILE", help="or a recording")
    parser.add_argument(
        "-d", "--duration", type=duration, default=5.0, metavar="TIME",
        help="how long to watch, as 500ms, 5s or 2m (default 5s)",
    )  # fmt: skip
    parser.add_argument("--from", dest="from_", metavar="TIME", help="leave out what was before")
    parser.add_argument("--to", metavar="TIME", help="leave out what came later")
    parser.add_argument(
        "--width", type=int, metavar="N", help="columns of the text (default: the terminal's)"
    )
    add_scan_options(parser)
    add_output(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Write the time line."""
    from locktop.collector.errors import LocktopError
    from locktop.collector.export.rendered_files import encoded
    from locktop.collector.export.text import timeline
    from locktop.collector.recording.time_lines import TimeLineReader

    if (arguments.pid is None) == (arguments.file is None):
        raise LocktopError("timeline needs one of -p PID and FILE")
    if arguments.width is not None and arguments.width < 60:
        raise LocktopError("--width: a time line needs 60 columns")
    path = destination(arguments)
    reader = TimeLineReader(_moments(arguments))
    first_ns, last_ns = reader.bounds()
    from_ns = moment(arguments.from_, first_ns, last_ns, first_ns)
    to_ns = moment(arguments.to, first_ns, last_ns, last_ns)
    if from_ns >= to_ns:
        raise LocktopError("--from must be before --to, and the span must have snapshots")
    text = timeline.render(reader.read(from_ns, to_ns), arguments.width or text_width())
    write(encoded(text), path, arguments)
    return 0


def _moments(arguments: argparse.Namespace) -> Moments:
    if arguments.file is not None:
        from locktop.collector.recording.recording import Recording

        return Recording(Path(arguments.file))
    return _watched(arguments)


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


def moment(text: str | None, first_ns: int, last_ns: int, otherwise_ns: int) -> int:
    """Return the time that a user means, nanoseconds since 1970.

    Args:
        text: a local time of day, or a time since the begin or before the end; None: not given.
        first_ns: the begin of what is known.
        last_ns: its end.
        otherwise_ns: the time without a text.

    Raises:
        LocktopError: the text is no time.
    """
    from datetime import datetime

    from locktop.collector.errors import LocktopError

    if text is None:
        return otherwise_ns
    if text[:1] in ("+", "-"):
        try:
            part_ns = round(duration(text[1:]) * 1e9)
        except argparse.ArgumentTypeError as error:
            raise LocktopError(str(error)) from None
        return first_ns + part_ns if text[0] == "+" else last_ns - part_ns
    found = _TIME.fullmatch(text)
    if found is None:
        raise LocktopError(f"{text!r} is not a time; 03:12:45.5, +2.5s and -10s are")
    since_midnight = int(found[1]) * 3600 + int(found[2]) * 60 + float(found[3] or 0)
    begin = datetime.fromtimestamp(first_ns // 10**9).astimezone()
    day = begin.replace(hour=0, minute=0, second=0)
    at = int(day.timestamp()) * 10**9 + round(since_midnight * 1e9)
    # A time of day before the begin is on the next day.
    return (
        at
        if at >= first_ns - 60 * 10**9 or at + 86_400 * 10**9 > last_ns
        else (at + 86_400 * 10**9)
    )
