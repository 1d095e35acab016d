"""``locktop gate``: whether a program holds its locks longer than another build of it."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.gate.formats import GATE_FORMATS
from locktop.tui.commands.output import add_format, add_output, destination, text_width, write

if TYPE_CHECKING:
    from locktop.collector.extensions.gate.gate import Gate
    from locktop.collector.extensions.gate.model import GateResult

NAME = "gate"
GROUP = "control"
HELP = "whether one build of a program holds its locks longer than another"
DESCRIPTION = """\
Runs CMD_A and CMD_B in turns and compares the median hold of each lock class that causes at least
1 % of the waiting. Each program must end by itself. The gate ends after 6, 9 or 12 pairs of runs,
as soon as the answer is clear. The unit is the run, and runs of A are compared with each other as a
control.

--baseline compares CMD with the runs of A in a saved result (--format json). There are no pairs,
so smaller changes than 25 % are refused. --show prints a saved result in another format.

exit status: 0 the same, 1 a hold is longer for certain and by more than --change; 2 not enough
data, a failed run, or a red control; 3 no run succeeded; 130 after Ctrl-C."""
_VS = "--vs"
_VARIABLE = re.compile(r"[A-Za-z_]\w*=[^\0]*", re.DOTALL)


def _runs(text: str) -> int:
    if not re.fullmatch(r"[6-9]|1[0-2]", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 6 to 12")
    return int(text)


def _percent(text: str) -> float:
    number = text.removesuffix("%")
    if not re.fullmatch(r"\d{1,4}(\.\d{1,6})?", number) or not float(number):
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage above 0, such as 5")
    return float(number) / 100


def _variable(text: str) -> str:
    if not _VARIABLE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--runs",
        type=_runs,
        default=12,
        metavar="N",
        help="at most N runs of each program, 6 to 12 (default 12)",
    )
    parser.add_argument(
        "--change",
        type=_percent,
        default=0.05,
        metavar="PERCENT",
        help="the least change that counts (default 5)",
    )
    parser.add_argument(
        "--waits", action="store_true", help="also judge the mean wait of an acquisition"
    )
    parser.add_argument(
        "--vs-env",
        type=_variable,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable of B alone; without --vs, B is CMD_A with it; may be repeated",
    )
    saved = parser.add_mutually_exclusive_group()
    saved.add_argument(
        "--baseline", metavar="FILE", help="compare CMD with the runs of A in a saved result"
    )
    saved.add_argument("--show", metavar="FILE", help="print a saved result, and run nothing")
    add_format(parser, GATE_FORMATS, GATE_FORMATS.default)
    add_output(parser)
    parser.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="-- CMD_A --vs CMD_B",
        help="the two programs, each with its arguments",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Run the gate, or read a result; write it and return its status."""
    path = destination(arguments)
    result = _result(arguments)
    data = GATE_FORMATS[arguments.format].render(result, text_width())
    write(data, path, arguments)
    if result.reason and (path is not None or arguments.format != GATE_FORMATS.default):
        from locktop.collector.extensions.gate import sentences

        print(f"locktop: {sentences.headline(result)}", file=sys.stderr, flush=True)
    return result.status


def _result(arguments: argparse.Namespace) -> GateResult:
    if arguments.show is not None:
        from locktop.collector.extensions.gate import json_document

        if arguments.command:
            raise LocktopError("--show runs nothing; leave the program out")
        return json_document.read(arguments.show)
    gate = _gate(arguments)
    progress = _PairProgress(arguments.runs)
    try:
        return gate.run(progress.write)
    finally:
        progress.clear()


def _gate(arguments: argparse.Namespace) -> Gate:
    """Return the gate for the command line. Raises LocktopError for wrong use."""
    from locktop.collector.extensions.gate import json_document
    from locktop.collector.extensions.gate.gate import Gate, GateOptions
    from locktop.collector.extensions.gate.model import GateSide

    words: list[str] = arguments.command
    first, second = words[1:] if words[:1] == ["--"] else words, []
    has_second = _VS in first
    if has_second:
        index = first.index(_VS)
        first, second = first[:index], first[index + 1 :]
    if not first or (has_second and not second):
        raise LocktopError("two programs are needed: `locktop gate -- CMD_A --vs CMD_B`")
    options = GateOptions(arguments.runs, arguments.change, arguments.waits)
    variables = tuple(arguments.vs_env)
    if arguments.baseline is not None:
        if has_second:
            raise LocktopError(
                "--baseline compares one program with a saved result; leave --vs out"
            )
        baseline = json_document.read(arguments.baseline)
        return Gate(baseline.a, GateSide(tuple(first), variables), options, baseline)
    if not has_second and not variables:
        raise LocktopError(
            "nothing to compare with: give --vs CMD_B, or --vs-env NAME=VALUE before CMD_A"
        )
    other = GateSide(tuple(second if has_second else first), variables)
    return Gate(GateSide(tuple(first)), other, options)


class _PairProgress:
    """One line of the terminal: how many runs are done."""

    def __init__(self, max_runs: int) -> None:
        self._max_runs = max_runs
        self._has_terminal = sys.stderr.isatty()

    def write(self, pairs: int) -> None:
        """Say how many pairs are complete."""
        self._print(f"running; {pairs} of at most {self._max_runs} pairs are done")

    def clear(self) -> None:
        """Clear the line."""
        self._print("")

    def _print(self, text: str) -> None:
        if self._has_terminal:
            with contextlib.suppress(OSError):
                print(f"\r{text:<60}\r", end="", file=sys.stderr, flush=True)
