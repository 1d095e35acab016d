"""Options of several commands."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.collector.sources import levels
from locktop.tui.commands.command_parser import COMMON, group

if TYPE_CHECKING:
    from locktop.collector.config.idle_rules_file import Rules
    from locktop.collector.config.suppressions import Suppression
    from locktop.collector.recording.history import History
    from locktop.collector.sources.attach import Source
    from locktop.tui.input_options import InputOptions
    from locktop.tui.screen_start import ScreenStart

#: Bytes of a memory. A whole snapshot of a large process must fit into the smallest.
_MIN_HISTORY, _MAX_HISTORY, _HISTORY = 1 << 20, 16 << 30, 64 << 20
_NO_TERMINAL = ("dumb", "unknown")


def pid(text: str) -> int:
    """A process id, or the name of one process."""
    try:
        number = int(text)
    except ValueError:
        return _pid_of_name(text)
    if number <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a process id")
    return number


def _pid_of_name(name: str) -> int:
    from locktop.collector.render.words.nearest import question
    from locktop.collector.sources.named_processes import named_processes

    processes = named_processes()
    matches = [process for process in processes if name in process.names]
    if len(matches) == 1:
        return matches[0].pid
    if not matches:
        names = set().union(*(process.names for process in processes))
        raise argparse.ArgumentTypeError(f"no process has the name {name!r}{question(name, names)}")
    rows = [f"{process.pid:>8} {process.command}" for process in matches]
    many = f"{len(rows)} processes have the name {name!r}; give the id of one"
    raise argparse.ArgumentTypeError("\n".join([many, *rows]))


def seconds(text: str) -> float:
    """A time above 0, in seconds."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return number


#: The value of an option that looks like an option: a time before the end.
BEFORE_THE_END = re.compile(r"^-\d+(\.\d+)?(ms|s|m|h)?$")
_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def duration(text: str) -> float:
    """A time above 0 with its unit (500ms, 5s, 2m, 1h), in seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text)
    number = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if not 0.0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; 500ms, 5s and 2m are")
    return number


def rate(text: str) -> float:
    """Snapshots a second."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.1 <= number <= 10.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a rate from 0.1 to 10")
    return number


def interval(text: str) -> float:
    """Seconds between snapshots."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.1 <= number <= 10.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.1 to 10")
    return number


_SIZE_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size_of(text: str) -> int:
    """Return a number of bytes with its unit (500M, 2G); 0 for another text."""
    match = re.fullmatch(r"(\d{1,9})([KMG])", text)
    return int(match[1]) * _SIZE_UNITS[match[2]] if match else 0


def history_size(text: str) -> int:
    """The bytes of a memory (64M, 1G); 0 for none."""
    size = size_of(text)
    if (size < _MIN_HISTORY and text != "0") or size > _MAX_HISTORY:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size from 1M to 16G, as 64M, or 0")
    return size


def add_history(parser: argparse.ArgumentParser) -> None:
    """Declare --history SIZE; history() makes the memory."""
    says = "keep the last 15 minutes in so many bytes (default 64M; 0 keeps nothing)"
    _add_anywhere(parser, "--history", history_size, "SIZE", says)


def _add_anywhere(
    parser: argparse.ArgumentParser,
    name: str,
    type_: Callable[[str], object],
    metavar: str,
    says: str,
) -> None:
    """Declare an option that may stand before the command and behind the command."""
    # Without a default a command does not override the same option before it.
    group(parser, COMMON).add_argument(
        name, type=type_, default=argparse.SUPPRESS, metavar=metavar, help=says
    )


def add_theme(parser: argparse.ArgumentParser) -> None:
    """Declare --theme NAME."""
    _add_anywhere(parser, "--theme", theme, "NAME", "the colours; key t goes through all themes")


def history(arguments: argparse.Namespace) -> History | None:
    """The memory that the user wants; None for none."""
    if not arguments.history:
        return None
    from locktop.collector.recording.history import History

    return History(arguments.history)


def theme(text: str) -> str:
    """The name of a theme that exists."""
    from locktop.tui.themes import load_all

    themes, wrong = load_all()
    if text not in themes:
        from locktop.collector.render.words.nearest import question

        there_are = f"there is no theme {text!r}; there are {', '.join(themes)}"
        there_are += question(text, themes)
        raise argparse.ArgumentTypeError("; ".join([there_are, *wrong]))
    return text


def add_pid(parser: argparse.ArgumentParser) -> None:
    """-p PID of a command that needs a process."""
    _add_pid(parser, "pid", required=True)


def add_pid_or(parser: argparse.ArgumentParser) -> None:
    """-p PID of a command that can take a file instead."""
    _add_pid(parser, "pid", required=False)


def add_pid_of_screen(parser: argparse.ArgumentParser) -> None:
    """-p PID without a command. The option has a name of its own, because before a command it is an
    error."""
    _add_pid(parser, "screen_pid", required=False)


def _add_pid(parser: argparse.ArgumentParser, name: str, required: bool) -> None:
    parser.add_argument(
        "-p",
        "--pid",
        type=pid,
        dest=name,
        required=required,
        metavar="PID",
        help="the process: its id, or its name if no other process has it",
    )


def add_screen(parser: argparse.ArgumentParser) -> None:
    """The options of the screen; set_defaults() has their defaults."""
    add_theme(parser)
    _add_anywhere(parser, "--rate", rate, "N", "snapshots a second (default 2)")
    says = "seconds between snapshots, in place of --rate"
    _add_anywhere(parser, "--interval", interval, "S", says)
    add_history(parser)
    add_mouse(parser)
    add_lists(parser)
    add_accessible(parser)


def add_mouse(parser: argparse.ArgumentParser) -> None:
    """Declare --mouse; input_options() has its value."""
    group(parser, COMMON).add_argument(
        "--mouse",
        action="store_true",
        default=argparse.SUPPRESS,
        help="let the mouse choose rows; then the terminal selects text only with Shift",
    )


def input_options(arguments: argparse.Namespace) -> InputOptions:
    """The keys and the mouse, as the user wants them."""
    from locktop.tui.input_options import InputOptions

    return InputOptions(arguments.settings.keymap, arguments.mouse)


def add_lists(parser: argparse.ArgumentParser) -> None:
    """Declare which view comes first and how its lists are shown; screen_start() reads that."""
    says = "the first view: locks, threads, overview, blocking ..., or a saved one"
    _add_anywhere(parser, "--view", str, "NAME", says)
    _add_anywhere(parser, "--sort", str, "KEY", "sort the lists by this figure")
    says = "only these rows, as lock:cache* wait>10ms"
    _add_anywhere(parser, "--filter", str, "TEXT", says)
    _add_anywhere(parser, "--columns", columns, "A,B,C", "these columns, whatever the width")


def columns(text: str) -> tuple[str, ...]:
    """Titles of columns with commas between them."""
    return tuple(filter(None, map(str.strip, text.split(","))))


def screen_start(arguments: argparse.Namespace) -> ScreenStart:
    """The view, order, filter and columns at first, by the options and the settings.

    Raises LocktopError for a view or a filter that does not exist.
    """
    from locktop.collector.render.words.row_filter import parse
    from locktop.tui import kept_choices
    from locktop.tui.screen_start import list_of, start_of

    chosen = arguments.settings
    kept, problem = kept_choices.load()
    if problem:
        arguments.settings_problems.append(problem)
    view = arguments.view if arguments.view is not None else chosen.view
    own = {list_of(view): arguments.columns} if arguments.columns else {}
    start = start_of(
        view,
        arguments.sort if arguments.sort is not None else chosen.sort,
        arguments.filter if arguments.filter is not None else chosen.filter,
        {**kept.columns, **chosen.columns, **own},
        {**kept.views, **chosen.views},
    )
    parse(start.filter)
    return start


def add_accessible(parser: argparse.ArgumentParser) -> None:
    """Declare --accessible; tui/accessible.py prints these lines."""
    group(parser, COMMON).add_argument(
        "--accessible",
        action="store_true",
        default=argparse.SUPPRESS,
        help='for a screen reader: lines "Header: value" in place of the screen, as with'
        " ACCESSIBLE=1",
    )


def wants_accessible(arguments: argparse.Namespace) -> bool:
    """Whether the user asked for lines in place of the screen."""
    return bool(arguments.accessible) or os.environ.get("ACCESSIBLE", "") not in ("", "0")


def set_defaults(parser: argparse.ArgumentParser) -> None:
    """Set the defaults of the options that have none, for the parser of the command line."""
    parser.set_defaults(theme=None, rate=None, interval=None, idle_matching=[], stop_threads=False)
    parser.set_defaults(accessible=False, suppressions=None, history=None, mouse=False)
    parser.set_defaults(view=None, sort=None, filter=None, columns=())


def apply_settings(arguments: argparse.Namespace) -> None:
    """Fill in the user's settings where the command line has no option.

    ``arguments.settings_problems`` has a line for each wrong setting. Raises LocktopError if two
    options contradict each other.
    """
    from locktop.collector.config import settings

    loaded = settings.load()
    chosen, problems = loaded.settings, list(loaded.problems)
    if arguments.rate is not None and arguments.interval is not None:
        raise LocktopError("--rate and --interval say the same; give one of them")
    if arguments.interval is not None:
        arguments.rate = 1.0 / arguments.interval
    elif arguments.rate is None:
        arguments.rate = chosen.rate
    if arguments.history is None:
        arguments.history = _convert("history", history_size, chosen.history, _HISTORY, problems)
    if arguments.theme is None and chosen.theme is not None:
        arguments.theme = _convert("theme", theme, chosen.theme, None, problems)
    if not arguments.idle_matching:
        arguments.idle_matching = list(chosen.idle_matching)
    if arguments.suppressions is None and chosen.suppressions:
        arguments.suppressions = Path(chosen.suppressions).expanduser()
    arguments.mouse = arguments.mouse or chosen.mouse
    arguments.settings, arguments.settings_problems = chosen, problems


def _convert(
    field: str, convert: Callable[[str], object], text: str, default: object, problems: list[str]
) -> object:
    try:
        return convert(text)
    except argparse.ArgumentTypeError as error:
        problems.append(f"setting {field}: {error}")
        return default


def add_idle_matching(parser: argparse.ArgumentParser) -> None:
    """Declare --idle-matching; rules() returns the rules with it."""
    group(parser, COMMON).add_argument(
        "--idle-matching",
        action="append",
        default=argparse.SUPPRESS,
        metavar="GLOB",
        help="waits below a function that matches are for work; with ! before GLOB they are not; "
        "may be given more than once",
    )


def add_scan_options(parser: argparse.ArgumentParser) -> None:
    """Declare how to scan a process that runs already; attached() does so."""
    add_idle_matching(parser)
    group(parser, COMMON).add_argument(
        "--stop-threads",
        action="store_true",
        default=argparse.SUPPRESS,
        help="stop a thread for a fraction of a millisecond if its call stack cannot be known "
        "otherwise; without this option no thread ever stops",
    )


def attached(pid: int, arguments: argparse.Namespace, of_classes: bool = False) -> Source:
    """The source for a process, by the options. Raises LocktopError.

    ``of_classes``: see attach().
    """
    from locktop.collector.sources.attach import attach

    chosen = rules(arguments)
    return attach(pid, chosen, stop_threads=arguments.stop_threads, of_classes=of_classes)


def rules(arguments: argparse.Namespace) -> Rules:
    """The rules that decide which waits are for work. Raises LocktopError."""
    from locktop.collector.config import idle_rules_file

    return idle_rules_file.load(arguments.idle_matching)


def add_level(parser: argparse.ArgumentParser) -> None:
    """Declare --level."""
    parser.add_argument(
        "--level",
        choices=levels.NAMES,
        help="what the library does in the program: nothing yet, counters, or also stacks and "
        "records of contended waits (the default), of all holds that a thread waited for, of all",
    )


def add_suppressions(parser: argparse.ArgumentParser) -> None:
    """Declare --suppressions FILE; suppressions() reads the file."""
    says = "potential deadlocks to leave out (default .locktop-suppressions, if it exists here)"
    _add_anywhere(parser, "--suppressions", Path, "FILE", says)


def suppressions(
    arguments: argparse.Namespace, warn: Callable[[str], None] | None = None
) -> tuple[Suppression, ...]:
    """The suppressions of the user. ``warn``: None for standard error. Raises LocktopError."""
    from locktop.collector.config import suppressions

    return suppressions.load(arguments.suppressions, warn or _warn)


def _warn(text: str) -> None:
    print(f"locktop: {text}", file=sys.stderr)


def has_terminal() -> bool:
    """Whether input and output are a terminal that can show the screen."""
    return not no_terminal()


def no_terminal() -> str:
    """Why the screen is impossible, to follow "needs a terminal"; "" where it is possible."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return "without one"
    term = os.environ.get("TERM", "")
    # Such a terminal does not tell its size.
    return f"TERM={term} is none; without one" if term.lower() in _NO_TERMINAL else ""
