"""``locktop ctl``: how much the library does in a running process."""

from __future__ import annotations

import argparse

from locktop.collector.sources import levels
from locktop.tui.commands.options import add_pid

NAME = "ctl"
HELP = "print or set how much the library does in a process"
DESCRIPTION = f"""\
Prints the level at which the library works in a process, or sets it while the process runs. The
figures are the cost of a lock and an unlock without contention on our machine, compared with a
program without the library. `locktop bench` measures your machine.

{levels.described()}

After a change from dormant, locks that are held already stay unknown until they are taken again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_pid(parser)
    parser.add_argument("--level", choices=levels.NAMES, help="the level from now on")


def execute(arguments: argparse.Namespace) -> int:
    """Set the level, or print it."""
    wanted: str | None = arguments.level
    if wanted is None:
        found = levels.read_level(arguments.pid)
        print(f"{found.process}: {found.level}")
    else:
        before = levels.set_level(arguments.pid, wanted)
        print(f"{before.process}: {before.level} -> {wanted}")
    return 0
