"""Checks the programs that are in a deadlock of two or three locks, and prints how long it took.

``locktop check`` must call each of them possible, and no other thread may be in the cycle. The exit
status is 1 if one is missed, or took longer than it may.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from operator import attrgetter
from pathlib import Path

import pytest
from msgspec import Struct
from support import tool
from support.targets import Compiler, Target

from probable.programs import LEVELS, LIBRARIES, program, scenarios

_MAX_S = 3.0
_POSSIBLE = 3  # the exit status
_ROW = "| {:12} | {:5} | {:9} | {:8} | {:7} |"


class Check(Struct):
    """The answer of ``locktop check`` about a program in a deadlock."""

    is_possible: bool  # it names exactly this deadlock, and does not call it certain
    duration_s: float
    text: str


def check(path: Path, scenario: str) -> Check:
    """Run a program into its deadlock, and check it."""
    with Target([path, scenario]) as target:
        waiters = {int(tid) for tid in target.truth()["waiters"]}
        began = time.monotonic()
        done = tool.run("check", "--json", "-p", target.pid)
        duration_s = time.monotonic() - began
    deadlocks = json.loads(done.stdout)["deadlocks"]
    cycles = [{edge["tid"] for edge in deadlock["cycle"]} for deadlock in deadlocks]
    is_certain = any(deadlock["certain"] for deadlock in deadlocks)
    is_possible = done.returncode == _POSSIBLE and cycles == [waiters] and not is_certain
    return Check(is_possible, duration_s, done.stdout)


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="probable.deadlocks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    is_good = True
    with tempfile.TemporaryDirectory() as directory:
        os.environ["LOCKTOP_CACHE"] = f"{directory}/names"
        compiler = Compiler(Path(directory))
        print(_ROW.format("library", "level", "deadlocks", "possible", "longest"))
        for library in filter(attrgetter("is_checked"), LIBRARIES):
            for level in LEVELS:
                try:
                    path = program(library, level, compiler)
                except pytest.skip.Exception as missing:
                    print(f"{library.name}: {missing}")
                    continue
                deadlocks = [name for name in scenarios(path) if name.startswith("deadlock")]
                checks = [check(path, name) for name in deadlocks * rounds]
                possible = sum(each.is_possible for each in checks)
                longest_s = max(each.duration_s for each in checks)
                row = library.name, level, len(checks), possible, f"{longest_s:.1f} s"
                print(_ROW.format(*row), flush=True)
                is_good &= possible == len(checks) and longest_s <= _MAX_S
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
