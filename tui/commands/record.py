"""``locktop record``: write what a process does to a file."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from locktop.tui.commands.options import (
    add_pid,
    add_scan_options,
    attached,
    duration,
    seconds,
    size_of,
)

if TYPE_CHECKING:
    from locktop.collector.recording.recorder import Recorder

NAME = "record"
GROUP = "keep"
HELP = "write snapshots and waits to a file, to look at later"
DESCRIPTION = """\
Writes a recording: snapshots with names and stacks, and the records of single waits. The file opens
on another machine too, with `locktop replay F`. A recording that was cut off opens up to the last
whole part. With --max-size or --keep, F becomes a directory of segments, and the oldest segments
are deleted.

The command goes on until the process ends, -d is over, or SIGINT, SIGTERM or SIGHUP. A second
signal does not wait for names. SIGUSR2 saves a snapshot (JSON) in the working directory. A full
disk ends the recording, which stays readable.

exit status: 0; 2 the process cannot be recorded, or the recording ended early."""


def size(text: str) -> int:
    """A number of bytes with its unit: 500M, 2G."""
    size_bytes = size_of(text)
    if not size_bytes:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; 500M and 2G are")
    return size_bytes


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Declare the limits of a recording; destination() has them."""
    parser.add_argument(
        "--max-size",
        type=size,
        metavar="SIZE",
        help="keep the newest SIZE (500M, 2G) of the recording, in a directory of segments",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_pid(parser)
    parser.add_argument(
        "-o", "--output", required=True, type=Path, metavar="F", help="a new file, or a directory"
    )
    parser.add_argument(
        "-d", "--duration", type=seconds, metavar="SECONDS", help="end after so many seconds"
    )
    add_limits(parser)
    parser.add_argument(
        "--keep",
        type=duration,
        metavar="TIME",
        help="keep at least the last TIME (10m, 2h), in a directory of segments",
    )
    parser.add_argument(
        "--every",
        type=duration,
        default=0.5,
        metavar="TIME",
        help="between snapshots (default 500ms)",
    )
    add_scan_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Record the process until its end, a signal, or the end of the time."""
    from locktop.collector.recording.record_loop import RecordLoop
    from locktop.collector.recording.recorder import Recorder, RecordingPath

    destination = RecordingPath(arguments.output, arguments.max_size, arguments.keep)
    destination.check()
    with contextlib.closing(attached(arguments.pid, arguments)) as source:
        recorder = Recorder(source, destination)
        try:
            RecordLoop(source, recorder, say).run(arguments.every, arguments.duration)
        finally:
            report(recorder)
    return 0


def report(recorder: Recorder) -> None:
    """Print what was recorded, if a recording was made."""
    from locktop.collector.render.words.units import size as size_text

    figures = recorder.figures
    if not figures.size:
        return
    lost = f" ({figures.lost:,} lost)" if figures.records or figures.lost else ""
    kept = f" of the last {figures.kept_s:.1f} s" if figures.kept_s is not None else ""
    say(
        f"recorded {figures.duration_s:.1f} s, {figures.snapshots:,} snapshots,"
        f" {figures.records:,} records{lost}, {size_text(figures.size)}{kept}"
        f" to {recorder.path}"
    )


def say(text: str) -> None:
    """Print a line of progress to the standard error, if that is still there."""
    from locktop.tui.views.cells import plain

    with contextlib.suppress(OSError):
        print(plain(text), file=sys.stderr, flush=True)
