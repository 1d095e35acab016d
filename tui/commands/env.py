"""``locktop env``: the environment variables that make a program load the library."""

from __future__ import annotations

import argparse
import shlex

from locktop.tui.commands.options import add_level

NAME = "env"
GROUP = "control"
HELP = "print the `export` lines that preload the library"
DESCRIPTION = """\
Prints lines for a shell. After `eval "$(locktop env)"` every program that this shell starts loads
the library. Libraries that LD_PRELOAD names already stay in it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_level(parser)
    parser.add_argument("--format", choices=("export",), default="export", help="lines for sh")
    parser.add_argument(
        "--include", action="store_true", help="print the directory of locktop.h instead"
    )
    parser.add_argument(
        "--link",
        action="store_true",
        help="print the flags that link a program with the library instead",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print the lines."""
    from locktop.collector.sources import launch

    if arguments.include:
        print(launch.include_directory())
        return 0
    if arguments.link:
        print(*launch.link_flags())
        return 0
    for name, value in launch.preload_environment(arguments.level).items():
        print(f"export {name}={shlex.quote(value)}")
    return 0
