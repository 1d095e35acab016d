"""Checks the programs that are in a deadlock of two or three locks, and prints how long it took.

``locktop check`` must call each of them possible, or certain if its locks have owners. No other
thread may be in the cycle. The exit status is 1 if a deadlock is missed, or took too long.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import pytest
from msgspec import Struct
from support import tool
from support.targets import Compiler, Target

from probable.judge import settled
from probable.programs import LIBRARIES, Command, program, scenarios

_MAX_S = 3.0
#: Names that an earlier command has read would hide that this one does not read them.
_NO_NAMES = {"LOCKTOP_CACHE": "none"}
_CERTAIN, _POSSIBLE = 1, 3  # exit statuses
_ROW = "| {:12} | {:11} | {:9} | {:6} | {:7} |"


class Check(Struct):
    """The answer of ``locktop check`` about a program in a deadlock."""

    is_right: bool  # it names exactly this deadlock, and calls it certain only if it is
    duration_s: float
    text: str


def check(command: Command, scenario: str) -> Check:
    """Run a program into its deadlock, and check it."""
    with Target([*command, scenario]) as target:
        waiters = {int(tid) for tid in target.truth()["waiters"]}
        settled(target.pid, waiters)
        began = time.monotonic()
        done = tool.run("check", "--json", "-p", target.pid, environment=_NO_NAMES)
        duration_s = time.monotonic() - began
    deadlocks = json.loads(done.stdout)["deadlocks"]
    cycles = [{edge["tid"] for edge in deadlock["cycle"]} for deadlock in deadlocks]
    is_certain = "certain" in scenario
    status = _CERTAIN if is_certain else _POSSIBLE
    is_right = done.returncode == status and cycles == [waiters]
    is_right &= all(deadlock["certain"] == is_certain for deadlock in deadlocks)
    return Check(is_right, duration_s, done.stdout)


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="probable.deadlocks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--library", action="append", help="one of the libraries")
    arguments = parser.parse_args()
    chosen = [each for each in LIBRARIES if each.name in (arguments.library or [each.name])]
    is_good = True
    with tempfile.TemporaryDirectory() as directory:
        os.environ["LOCKTOP_CACHE"] = f"{directory}/names"
        compiler = Compiler(Path(directory))
        print(_ROW.format("library", "level", "deadlocks", "right", "longest"))
        for library in chosen:
            for level in library.levels:
                try:
                    command = program(library, level, compiler)
                except pytest.skip.Exception as missing:
                    print(f"{library.name}: {missing}")
                    continue
                deadlocks = [name for name in scenarios(command) if name.startswith("deadlock")]
                checks = [check(command, name) for name in deadlocks * arguments.rounds]
                right = sum(each.is_right for each in checks)
                longest_s = max(each.duration_s for each in checks)
                row = library.name, level, len(checks), right, f"{longest_s:.1f} s"
                print(_ROW.format(*row), flush=True)
                is_good &= right == len(checks) and longest_s <= _MAX_S
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
