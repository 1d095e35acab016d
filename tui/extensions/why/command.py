"""``locktop why``: what a process waits for, across processes, to the root."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.why.formats import WHY_FORMATS
from locktop.tui.commands import options
from locktop.tui.commands.output import (
    add_format,
    add_output,
    destination,
    text_width,
    write,
)

if TYPE_CHECKING:
    from locktop.collector.extensions.why.model import WhyAnswer

NAME = "why"
GROUP = "look"
HELP = "what a process waits for, also across processes, to the root"
DESCRIPTION = """\
Follows the waits of a process to their root: through locks, pipes, sockets of this machine, locks
of files and children. The first line is the verdict, the second the way in one sentence. The chain
follows step by step, with the line in the code where locktop can read it. No process stops.

A deadlock is certain if two scans show that only threads of the chain could end its waits, and all
of them sleep. It is possible if something is missing for that, which the answer names: a signal
handler that may act, a lock without a known holder, or files of other users.

Of a core dump the chain ends where it leaves the process, and the verdict is that of `check`.

exit status: 0 no deadlock found; 1 a deadlock is certain; 2 no answer; 3 a deadlock is possible."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "pids",
        nargs="*",
        type=_pid_or_core,
        metavar="PID",
        help="a process: its id, or its name if no other process has it; or a core dump",
    )
    parser.add_argument(
        "--stuck",
        action="store_true",
        help="look at all processes, and show those that are in a deadlock or wait for one",
    )
    add_format(parser, WHY_FORMATS, WHY_FORMATS.default)
    add_output(parser)


def _pid_or_core(text: str) -> int | str:
    """A process, as options.pid() has it, or the path of a file that is a core or should be one."""
    try:
        return options.pid(text)
    except argparse.ArgumentTypeError:
        if os.path.isfile(text):
            return text
        raise


def execute(arguments: argparse.Namespace) -> int:
    """Write the answer, and return the exit status."""
    if bool(arguments.pids) is arguments.stuck:
        raise LocktopError("give one or more processes, or --stuck for all of them")
    if len(arguments.pids) > 1 and not all(isinstance(each, int) for each in arguments.pids):
        raise LocktopError("give one core alone, or processes")
    path = destination(arguments)
    form = WHY_FORMATS[arguments.format]
    answer = _answer(arguments)
    write(form.render(answer, text_width()), path, arguments)
    return exit_status(answer)


def exit_status(answer: WhyAnswer) -> int:
    """Return 1 if a deadlock is certain, 3 if one is possible or a core was cut, else 0."""
    from locktop.collector.extensions.why.model import WhyVerdict

    verdicts = {chain.verdict for chain in answer.chains}
    if WhyVerdict.DEADLOCK in verdicts:
        return 1
    return 3 if WhyVerdict.POSSIBLE in verdicts or not answer.is_complete else 0


def _answer(arguments: argparse.Namespace) -> WhyAnswer:
    if arguments.pids and not isinstance(arguments.pids[0], int):
        from locktop.collector.extensions.why import core_waits

        return core_waits.why(arguments.pids[0])
    from locktop.collector.extensions.why import reading

    if arguments.stuck:
        return reading.why_stuck()
    return reading.why(list(dict.fromkeys(arguments.pids)))
