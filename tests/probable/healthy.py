"""Scans healthy programs that hold locks for seconds: each deadlock that is named is a false one.

The exit status is 1 if there was one.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.targets import Compiler, Target

from locktop.collector.sources.attach import attach
from probable.programs import LIBRARIES, Command, Library, program

#: A scan sees other waits if some time has passed.
_PAUSE_S = 0.5


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="probable.healthy", description=__doc__)
    parser.add_argument("--checks", type=int, default=1000)
    parser.add_argument("--library", action="append", help="one of the libraries")
    arguments = parser.parse_args()
    chosen = [each for each in LIBRARIES if each.name in (arguments.library or [each.name])]
    with tempfile.TemporaryDirectory() as directory, ExitStack() as running:
        os.environ["LOCKTOP_CACHE"] = f"{directory}/names"
        targets = []
        for name, command in _programs(Compiler(Path(directory)), chosen):
            targets.append((name, running.enter_context(Target(command))))
            targets[-1][1].expect("ready")
        return 1 if _false_findings(targets, arguments.checks) else 0


def _programs(compiler: Compiler, libraries: Iterable[Library]) -> Iterator[tuple[str, Command]]:
    for library in libraries:
        for level in library.levels:
            try:
                yield f"{library.name} {level}", program(library, level, compiler, "healthy")
            except pytest.skip.Exception as missing:
                print(f"{library.name}: {missing}")


def _false_findings(targets: list[tuple[str, Target]], checks: int) -> int:
    false_findings = named = 0
    sources = [attach(target.pid) for _, target in targets]
    for number in range(checks):
        name, _ = targets[number % len(targets)]
        seen = sources[number % len(targets)].scan(resolve=True)
        named += sum(bool(lock.holders_probable) for lock in seen.locks)
        for deadlock in seen.deadlocks:
            false_findings += 1
            print(f"{name}: {deadlock}", flush=True)
        if number % len(targets) == len(targets) - 1:
            time.sleep(_PAUSE_S)
    for source in sources:
        source.close()
    print(f"{checks} checks, {named} locks with probable holders, {false_findings} false deadlocks")
    return false_findings


if __name__ == "__main__":
    sys.exit(main())
