"""Options that several commands have."""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from locktop.collector.sources import levels

if TYPE_CHECKING:
    from locktop.collector.config.idle_rules_file import Rules
    from locktop.collector.sources.attach import Source

_NO_TERMINAL = ("dumb", "unknown")


def pid(text: str) -> int:
    """A process id."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a process id")
    return number


def seconds(text: str) -> float:
    """A time above nought, in seconds."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return number


_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def duration(text: str) -> float:
    """A time above nought with its unit (500ms, 5s, 2m, 1h), in seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text)
    number = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not 0.0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; 500ms, 5s and 2m are")
    return number


def rate(text: str) -> float:
    """Pictures a second."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.1 <= number <= 10.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a rate from 0.1 to 10")
    return number


def theme(text: str) -> str:
    """The name of a theme that there is."""
    from locktop.tui.themes import load_all

    themes, wrong = load_all()
    if text not in themes:
        there_are = f"there is no theme {text!r}; there are {', '.join(themes)}"
        raise argparse.ArgumentTypeError("; ".join([there_are, *wrong]))
    return text


def add_pid(parser: argparse.ArgumentParser) -> None:
    """-p PID, of a command that needs it."""
    _add_pid(parser, "pid", required=True)


def add_pid_or(parser: argparse.ArgumentParser) -> None:
    """-p PID, of a command that can do with something else."""
    _add_pid(parser, "pid", required=False)


def add_pid_of_screen(parser: argparse.ArgumentParser) -> None:
    """-p PID without a command; apart from that of a command, before which it means nothing."""
    _add_pid(parser, "screen_pid", required=False)


def _add_pid(parser: argparse.ArgumentParser, name: str, required: bool) -> None:
    parser.add_argument(
        "-p",
        "--pid",
        type=pid,
        dest=name,
        required=required,
        metavar="PID",
        help="the process to look at",
    )


def add_screen(parser: argparse.ArgumentParser) -> None:
    """What the screen looks like; set_defaults() says what it is when not given."""
    # Without a default of its own a command does not undo what stands before it.
    parser.add_argument(
        "--theme",
        type=theme,
        default=argparse.SUPPRESS,
        metavar="NAME",
        help="colours; key t goes through all of them",
    )
    parser.add_argument(
        "--rate",
        type=rate,
        default=argparse.SUPPRESS,
        metavar="N",
        help="pictures a second (default 2)",
    )


def set_defaults(parser: argparse.ArgumentParser) -> None:
    """For the parser of the whole command line: of what has none of its own."""
    parser.set_defaults(theme=None, rate=2.0, idle_matching=[], stop_threads=False)


def add_idle_matching(parser: argparse.ArgumentParser) -> None:
    """What is a wait for work; rules() gives it with the rest."""
    parser.add_argument(
        "--idle-matching",
        action="append",
        default=argparse.SUPPRESS,
        metavar="GLOB",
        help="waits under a function that matches are for work, with ! before it they are not; may "
        "be given again",
    )


def add_scan_options(parser: argparse.ArgumentParser) -> None:
    """How a process that runs already is looked at; attached() does so."""
    add_idle_matching(parser)
    parser.add_argument(
        "--stop-threads",
        action="store_true",
        default=argparse.SUPPRESS,
        help="stop a thread for a fraction of a millisecond where its call stack cannot be known "
        "otherwise; without it nothing ever stops",
    )


def attached(pid: int, arguments: argparse.Namespace) -> Source:
    """A source for a process, as the options say. Raises LocktopError."""
    from locktop.collector.sources.attach import attach

    return attach(pid, rules(arguments), stop_threads=arguments.stop_threads)


def rules(arguments: argparse.Namespace) -> Rules:
    """By what waits are told apart. Raises LocktopError."""
    from locktop.collector.config import idle_rules_file

    return idle_rules_file.load(arguments.idle_matching)


def add_level(parser: argparse.ArgumentParser) -> None:
    """How much the library does."""
    parser.add_argument(
        "--level",
        choices=levels.NAMES,
        help="what the library does in the program: nothing yet, counters, or also stacks and "
        "records of contended waits (the default), of all holds that somebody waited for, of all",
    )


def add_suppressions(parser: argparse.ArgumentParser) -> None:
    """--suppressions FILE; see collector/config/suppressions.py."""
    parser.add_argument(
        "--suppressions",
        type=Path,
        metavar="FILE",
        help="potential deadlocks to leave out (default .locktop-suppressions, if it is here)",
    )


def has_terminal() -> bool:
    """Whether there is somebody to look at a screen and to press keys."""
    return not no_terminal()


def no_terminal() -> str:
    """Why there can be no screen, to be said after "needs a terminal"; "" if there can be one."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return "without one"
    term = os.environ.get("TERM", "")
    # Such a terminal cannot be asked for its size.
    return f"TERM={term} is none; without one" if term.lower() in _NO_TERMINAL else ""
