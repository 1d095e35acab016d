"""Compares what an operation costs with the libraries of two versions, which take turns.

    .venv/bin/python bench/libraries.py BEFORE NOW [ROUNDS [OPERATION...]]

BEFORE and NOW are two checkouts, each after ``make setup``. The program is the `locktop-bench` of
NOW, and `locktop-bench list` there names the operations. Each round measures each operation without
a library, with the library of BEFORE and with that of NOW, in a random order. The table has the
median of each with its quartiles, in nanoseconds, and the least. Other load of the machine makes
all of them larger, the least ones least. 41 rounds take two minutes.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
from pathlib import Path

OPERATIONS = {"sem": 1, "futex-wake": 1, "sem-turns": 2, "futex-turns": 2}
ROUNDS, LENGTH_S = 41, 0.2
UNPREPARED = "unprepared"


def installed(checkout: str, name: str) -> Path:
    """Return a file of the installation of a checkout."""
    (path,) = Path(checkout, ".venv").glob(f"lib/python3*/site-packages/locktop/{name}")
    return path.resolve()


def cost_ns(program: Path, operation: str, threads: int, library: Path | None) -> float:
    """Return the nanoseconds of an operation."""
    environment = dict(os.environ) | ({"LD_PRELOAD": str(library)} if library else {})
    command = [program, "cost", operation, str(threads), str(LENGTH_S)]
    measured = json.loads(subprocess.check_output(command, env=environment))
    return float(measured["ns"])


def row(operation: str, costs: dict[str, list[float]]) -> str:
    """Return the line of an operation."""
    cells = []
    for of_library in costs.values():
        low, median, high = statistics.quantiles(of_library, n=4)
        cells.append(f"{median:,.1f} ({low:,.1f}-{high:,.1f}), least {min(of_library):,.1f}")
    return f"| {operation} | {' | '.join(cells)} |"


def main(before: str, now: str, rounds: str = str(ROUNDS), *operations: str) -> None:
    """Measure and print the table."""
    program = installed(now, "bin/locktop-bench")
    libraries = {
        UNPREPARED: None,
        "before": installed(before, "lib/liblocktop.so"),
        "now": installed(now, "lib/liblocktop.so"),
    }
    chosen = {name: OPERATIONS.get(name, 1) for name in operations} or OPERATIONS
    costs = {name: {library: [] for library in libraries} for name in chosen}
    for _ in range(int(rounds)):
        turns = [(name, library) for name in chosen for library in libraries]
        random.shuffle(turns)
        for name, library in turns:
            ns = cost_ns(program, name, chosen[name], libraries[library])
            costs[name][library].append(ns)
    print(f"| operation | {' | '.join(f'{library}, ns' for library in libraries)} |")
    print(f"| --- |{' --- |' * len(libraries)}")
    for name, of_libraries in costs.items():
        print(row(name, of_libraries))


if __name__ == "__main__":
    main(*sys.argv[1:])
