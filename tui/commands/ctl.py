"""``locktop ctl``: how much the library does in a running process."""

from __future__ import annotations

import argparse

from locktop.tui import levels
from locktop.tui.commands.options import add_pid

NAME = "ctl"
HELP = "say or set how much the library does in a process"
DESCRIPTION = f"""\
Says at which level the library works in a process, or sets it, while the process runs. With what
an uncontended lock and unlock took on our machine, times bare (`locktop bench`: on yours):

{levels.described()}

What is held while a level is switched on from dormant is not known until it is taken again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_pid(parser)
    parser.add_argument("--level", choices=levels.NAMES, help="the level from now on")


def execute(arguments: argparse.Namespace) -> int:
    """Set the level, or print it."""
    from locktop.collector.sources import level_control

    level = level_control.read_or_set(arguments.pid, arguments.level)
    change = level.now if arguments.level is None else f"{level.before} -> {level.now}"
    print(f"{level.process}: {change}")
    return 0
