"""``locktop list``: the processes that run with the library."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from locktop.collector.sources.discover import Candidate

NAME = "list"
HELP = "which processes run with the library"
DESCRIPTION = """\
Lists the processes that run with the library, which locktop watches exactly. With --all the
command also lists the other processes, and why each of them runs without the library. locktop can
only sample these."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--all", action="store_true", help="also those without the library")
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Print the list."""
    from locktop.collector.sources.discover import candidates

    processes = candidates()
    visible = [c for c in processes if c.preloaded or arguments.all]
    if arguments.json:
        _print_json(visible)
        return 0
    for line in table(visible):
        print(line)
    hidden = len(processes) - len(visible)
    if hidden and sys.stderr.isatty():
        print(f"{hidden} more run without the library: `locktop list --all`", file=sys.stderr)
    return 0


def _print_json(visible: list[Candidate]) -> None:
    import json

    from msgspec import to_builtins

    print(json.dumps([to_builtins(candidate) for candidate in visible], indent=1))


def table(visible: list[Candidate]) -> list[str]:
    """The list as lines of text."""
    widest = max([len(candidate.user) for candidate in visible] + [4])
    lines = [f"{'PID':>7} {'USER':<{widest}} {'THREADS':>7} COMMAND"]
    for candidate in visible:
        command = candidate.cmdline or candidate.comm
        why = "" if candidate.preloaded else f"  -- {candidate.why}"
        lines.append(
            f"{candidate.pid:>7} {candidate.user:<{widest}} {candidate.threads:>7} {command}{why}"
        )
    return lines
