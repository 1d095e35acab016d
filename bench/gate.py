"""How often `locktop gate` is wrong: false alarms, and changes that it finds (docs/overhead.md).

    make gate-bench
    PYTHONPATH=tests .venv/bin/python bench/gate.py [GATES [LOADS [CHANGES]]]

Each gate compares two runs of tests/targets/contention/timed_holds.c, of one second each. B holds
its lock for as long as A, or for some percent longer. GATES is the number of gates of a row. LOADS
are numbers of busy processes beside the gate, CHANGES percentages, both with commas.

The table has the exit statuses of the gates, and how long the median and the longest gate took.
Each gate has a line on the standard error, so that nothing is lost if the row is cut short.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from support.targets import Compiler
from support.tool import COMMAND

#: The hold of A: the target counts to this number.
_HOLD, _SECONDS = 1000, "1"


def gate(program: Path, percent: int) -> tuple[int, float]:
    """Return the exit status of one gate, and its seconds."""
    command = [COMMAND, "gate", "--", str(program), f"c{_HOLD}", _SECONDS, "--vs"]
    command += [str(program), f"c{_HOLD * (100 + percent) // 100}", _SECONDS]
    began = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    duration_s = time.monotonic() - began
    print(f"{percent} %: status {done.returncode}, {duration_s:.0f} s", file=sys.stderr, flush=True)
    return done.returncode, duration_s


@contextlib.contextmanager
def load(processes: int) -> Iterator[None]:
    """Keep CPUs busy meanwhile."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def main(gates: int, loads: list[int], changes: list[int]) -> None:
    """Print a row for each load and change, as soon as its gates are done."""
    print("| load | B is longer by | gates | same | worse | no answer | median | longest |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        program = Compiler(Path(directory)).program("timed_holds")
        for processes in loads:
            for percent in changes:
                with load(processes):
                    results = [gate(program, percent) for _ in range(gates)]
                statuses = Counter(status for status, _ in results)
                times = [duration_s for _, duration_s in results]
                print(
                    f"| {processes} | {percent} % | {gates} | {statuses[0]} | {statuses[1]}"
                    f" | {gates - statuses[0] - statuses[1]} | {statistics.median(times):.0f} s"
                    f" | {max(times):.0f} s |",
                    flush=True,
                )


if __name__ == "__main__":
    values = [*sys.argv[1:], *("20", "0,8", "0,20,10")[len(sys.argv) - 1 :]]
    main(int(values[0]), *([int(part) for part in value.split(",")] for value in values[1:3]))
