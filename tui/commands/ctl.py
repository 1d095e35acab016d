"""``locktop ctl``: how much the library does in a running process."""

from __future__ import annotations

import argparse

from locktop.tui.commands.options import LEVELS, add_pid

NAME = "ctl"
HELP = "say or set how much the library does in a process"
DESCRIPTION = """\
Says at which level the library works in a process, or sets it, while the process runs.

  dormant    hooks call straight through
  counting   counters and holders; no stacks, no records
  contended  also stacks and records of contended waits (the default)
  blocks     also a record of each hold during which somebody else waited
  all        also a record of every other hold: costs several times as much

What is held while a level is switched on from dormant is not known until it is taken again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_pid(parser, required=True)
    parser.add_argument("--level", choices=LEVELS, help="the level from now on")


def execute(arguments: argparse.Namespace) -> int:
    """Set it, say it."""
    from locktop.collector import control, discover

    target = discover.find(arguments.pid)
    memory = discover.open_memory(target)
    try:
        if arguments.level is None:
            print(f"{target}: {control.level_name(memory.control())}")
            return 0
        before = control.set_level(memory, arguments.level)
        print(f"{target}: {before} -> {arguments.level}")
        return 0
    finally:
        memory.close()
