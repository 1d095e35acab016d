"""``locktop demo``: a small program with lock problems, to see what locktop shows."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from locktop.collector.errors import LocktopError
from locktop.tui.commands.options import (
    add_screen,
    has_terminal,
    rules,
    seconds,
    set_defaults,
)
from locktop.tui.exit_status import EXIT_SCREEN_FAULT, EXIT_WRONG

NAME = "demo"
GROUP = "look"
HELP = "watch a small program with lock problems"
DESCRIPTION = """\
Starts a small program that has a hot lock, an idle pool of threads, a slow reader-writer
lock and, with --deadlock, a deadlock. Without a terminal the command prints a snapshot."""

#: Long enough for every problem of the program to appear.
_SCANS, _PAUSE_S = 6, 0.5
#: The names of the profiles that the program of --profile makes.
_PROFILES = ("random", "sorted")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--deadlock", action="store_true", help="let three threads deadlock")
    form.add_argument(
        "--profile",
        action="store_true",
        help="instead compare two profiles of a loop with a branch: of random and of sorted bytes",
    )
    parser.add_argument("--seconds", type=seconds, metavar="N", help="end after N seconds")
    add_screen(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Start the program and watch it."""
    if arguments.profile:
        return _compare_profiles()
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


def demo_program(name: str = "locktop-demo") -> Path:
    """The path of a demonstration program. Raises LocktopError."""
    import locktop

    for directory in locktop.__path__:
        path = Path(directory) / "bin" / name
        if path.is_file():
            return path
    raise LocktopError(f"{name} is missing from this installation; install locktop again")


def _compare_profiles() -> int:
    import json
    import subprocess

    from locktop.collector.render.words import units
    from locktop.collector.sources import launch

    program = subprocess.Popen(
        [demo_program("locktop-branch-demo"), "--wait"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **launch.preload_environment("contended")},
    )
    with program:
        assert program.stdout is not None
        said = program.stdout.readline()
        if not said:  # the program says on standard error why not
            return EXIT_WRONG
        first, second = (json.loads(said)[f"{name}_ns"] * 1e-9 for name in _PROFILES)
        _run("profile", "show", "-p", str(program.pid), *_PROFILES)
        print()
        print(
            f"CPU time that the program measured: A {units.duration(first)},"
            f" B {units.duration(second)}, B : A {second / first:.3f}"
        )
    return 0


def _run(name: str, *words: str) -> None:
    """Run a command of an extension. Raises LocktopError."""
    from locktop.tui.extension import screen_extensions

    getters = (extension.commands for extension in screen_extensions())
    commands = [command for get in getters if get is not None for command in get()]
    command = next(command for command in commands if name == command.NAME)
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    set_defaults(parser)
    command.execute(parser.parse_args(words))


def _print_snapshot(command: list[str]) -> int:
    from locktop.collector.render.text.report import render
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
