"""``locktop demo``: a small program with lock problems, to see what locktop shows."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from locktop.tui.commands.options import add_screen, has_terminal, rules, seconds
from locktop.tui.exit_status import EXIT_SCREEN_FAULT

NAME = "demo"
HELP = "watch a small program with lock problems"
DESCRIPTION = """\
Starts a small program that has a hot lock, an idle pool of threads, a slow reader-writer
lock and, with --deadlock, a deadlock. Without a terminal the command prints a snapshot."""

#: Long enough for every problem of the program to appear.
_SCANS, _PAUSE_S = 6, 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--deadlock", action="store_true", help="let three threads deadlock")
    parser.add_argument("--seconds", type=seconds, metavar="N", help="end after N seconds")
    add_screen(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Start the program and watch it."""
    program = demo_program()
    command = [str(program)]
    if arguments.deadlock:
        command.append("--deadlock")
    if arguments.seconds:
        command += ["--seconds", str(max(1, round(arguments.seconds)))]
    if not has_terminal():
        return _print_snapshot(command)
    from locktop.collector.sources.launched_program import LaunchedProgram
    from locktop.tui.commands.attach import watch

    with LaunchedProgram(command[0], command, output=os.devnull, ends_with_screen=True) as started:
        status = watch(started.source(rules(arguments)), arguments, launched=started)
    return status if status == EXIT_SCREEN_FAULT else started.status


def demo_program() -> Path:
    """The path of the demonstration program. Raises LocktopError."""
    import locktop
    from locktop.collector.errors import LocktopError

    for directory in locktop.__path__:
        path = Path(directory) / "bin" / "locktop-demo"
        if path.is_file():
            return path
    raise LocktopError("locktop-demo is missing from this installation; install locktop again")


def _print_snapshot(command: list[str]) -> int:
    from locktop.collector.export.text.report import render
    from locktop.collector.sources.launched_program import LaunchedProgram

    with LaunchedProgram(command[0], command, output=os.devnull, ends_with_screen=True) as started:
        source = started.source()
        try:
            before = source.scan()
            # Two scans in a row confirm a deadlock.
            for _ in range(_SCANS - 1):
                time.sleep(_PAUSE_S)
                source.scan()
            # The report has the use of time since the scan before.
            time.sleep(_PAUSE_S)
            print(render(source.scan(resolve=True), before))
        finally:
            source.close()
    return 0
