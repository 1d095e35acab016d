"""``locktop whatif``: what a change of the locks would gain."""

from __future__ import annotations

import argparse
import re
from contextlib import closing
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.whatif.formats import WHATIF_FORMATS
from locktop.tui.commands import recorded
from locktop.tui.commands.options import add_scan_options, attached, seconds
from locktop.tui.commands.output import (
    add_format,
    add_output,
    announced,
    destination,
    text_width,
    write,
)

if TYPE_CHECKING:
    from locktop.collector.extensions.whatif.answers import Answered
    from locktop.collector.extensions.whatif.question import WantedChanges

NAME = "whatif"
GROUP = "look"
HELP = "what a change of the locks would gain"
DESCRIPTION = """\
Predicts the throughput of a process after a change: a shorter hold, a lock that is split, an rwlock
in place of a mutex, other numbers of threads or CPUs. The command records all holds for the time of
-d, and then sets the level before again. It replays the records without and with each change.

Without a change the command tries the likely ones, and ranks them. FILE is a recording of a process
at the level all.

The exit status is 0 if at least one change is predicted, and 3 if the command refuses."""
#: No prediction can be given.
_REFUSED = 3


def _cpus(text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,3}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 9999")
    return int(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    recorded.add_file(
        parser, "or a recording at the level all", "of a recording: the figures up to T, as --to"
    )
    parser.add_argument(
        "-d",
        "--duration",
        type=seconds,
        metavar="SECONDS",
        help="how long to record (default 10, at most 3600)",
    )
    changes = parser.add_argument_group("changes, each may be given several times")
    for option, form, text in (
        ("--hold", "LOCK=0.5x", "threads hold LOCK for so many times as long"),
        ("--split", "LOCK=8", "so many locks in place of LOCK"),
        ("--rw", "LOCK=0.9", "an rwlock in place of the mutex LOCK; the share reads (default 0.9)"),
        ("--threads", "GROUP=16", "so many threads of one name, without its number"),
    ):
        changes.add_argument(option, action="append", default=[], metavar=form, help=text)
    changes.add_argument(
        "--cpus", action="append", default=[], type=_cpus, metavar="8", help="so many CPUs"
    )
    parser.add_argument(
        "--throughput",
        metavar="LOCK|mark:TEXT|rounds",
        help="count acquisitions of LOCK, or marks (default: frequent marks, else rounds)",
    )
    add_format(parser, WHATIF_FORMATS, WHATIF_FORMATS.default)
    add_scan_options(parser)
    add_output(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Write the predictions."""
    recorded.check_use(arguments, NAME)
    path = destination(arguments)
    answered = _answer(arguments)
    form = WHATIF_FORMATS[arguments.format]
    data = form.render(answered.whatif, answered.snapshot, text_width())
    write(announced(data, form, arguments), path, arguments)
    return 0 if answered.whatif.refusal is None else _REFUSED


def _answer(arguments: argparse.Namespace) -> Answered:
    from locktop.tui.extensions.whatif import predictions

    wanted = _wanted_changes(arguments)
    if arguments.file is not None:
        if not recorded.is_recording(arguments.file):
            raise LocktopError(f"{arguments.file} is no recording; `locktop record` makes one")
        return predictions.predict_file(arguments, wanted)
    predictions.check_duration(arguments.duration)
    with closing(attached(arguments.pid, arguments)) as source:
        return predictions.predict_process(source, arguments.pid, arguments.duration, wanted)


def _wanted_changes(arguments: argparse.Namespace) -> WantedChanges:
    from locktop.collector.extensions.whatif.question import WantedChanges

    return WantedChanges(
        hold=arguments.hold,
        split=arguments.split,
        rw=arguments.rw,
        threads=arguments.threads,
        cpus=arguments.cpus,
        throughput=arguments.throughput,
    )
