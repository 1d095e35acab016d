"""Runs all scenarios of all libraries, and prints the table of docs/sampling.md.

The exit status is 1 if a library has fewer holders named, or more wrong ones, than it may.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import pytest
from support.targets import Compiler

from probable.judge import Verdict, judge
from probable.programs import LIBRARIES, Library, program, scenarios

_MIN_NAMED, _MAX_WRONG = 0.95, 0.01
_ROW = "| {:12} | {:11} | {:5} | {:5} | {:9} | {:5} |"
#: Scenarios that show the limits in docs/sampling.md have a row of their own, and do not count.
APART = "apart"


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="probable", description=__doc__)
    parser.add_argument("--library", action="append", help="one of the libraries")
    parser.add_argument("--level", action="append", help="-O0 or -O2, or a version of Python")
    parser.add_argument("--scenario", help="a part of the names of scenarios")
    parser.add_argument("--directory", type=Path, help="keeps the programs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        os.environ["LOCKTOP_CACHE"] = f"{directory}/names"
        compiler = Compiler(Path(directory), arguments.directory)
        print(_ROW.format("library", "", "waits", "named", "not named", "wrong"))
        total = Verdict()
        for library in LIBRARIES:
            for level in library.levels:
                is_chosen = arguments.level is None or level in arguments.level
                if is_chosen and (arguments.library is None or library.name in arguments.library):
                    total += _row(library, level, compiler, arguments.scenario or "")
        _print("all", "", total)
    return 0 if _is_good(total) else 1


def _row(library: Library, level: str, compiler: Compiler, part: str) -> Verdict:
    try:
        command = program(library, level, compiler)
    except pytest.skip.Exception as missing:
        print(f"{library.name}: {missing}")
        return Verdict()
    total, apart = Verdict(), Verdict()
    for scenario in scenarios(command):
        if part not in scenario:
            continue
        if scenario.startswith(APART):
            apart += judge(command, scenario)
        else:
            total += judge(command, scenario)
    _print(library.name, level, total)
    if apart.waits:
        _print(f"{library.name} {APART}", level, apart)
    return total


def _print(name: str, level: str, total: Verdict) -> None:
    missing = total.waits - total.named
    print(_ROW.format(name, level, total.waits, total.named, missing, total.wrong))
    if level:
        for doubt in total.doubts:
            print(f"    {doubt}")
    sys.stdout.flush()


def _is_good(total: Verdict) -> bool:
    named, wrong = _MIN_NAMED * total.waits, _MAX_WRONG * total.waits
    return total.named >= named and total.wrong <= wrong


if __name__ == "__main__":
    sys.exit(main())
