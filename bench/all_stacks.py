"""Measures what `locktop stacks` costs (docs/overhead.md).

    make all-stacks-bench CROWDS="300 1000"

The program is tests/targets/contention/busy_crowd.c: threads on 42 locks, each of which waits 10 to
30 times a second. Each row has one crowd, with the library or sampled. Wall time and CPU time of
the command are least and median. The last column has the number of threads without a known stack.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from support.targets import Compiler, Target
from tool_costs import LOCKTOP

from locktop.collector.sources.launch import preload_environment

ROUNDS = 5


def row(compiler: Compiler, threads: int, preloaded: bool) -> str:
    """Return the row of one crowd."""
    environment = preload_environment(None) if preloaded else None
    with Target([compiler.program("busy_crowd"), str(threads)], environment) as target:
        target.expect("ready")
        rounds = [measure(target.pid) for _ in range(ROUNDS + 1)][1:]  # the first fills the cache
    walls, used, unknown = zip(*rounds, strict=True)
    name = "with the library" if preloaded else "sampled"
    cells = [f"{name}, {threads:,} threads", seconds(walls), seconds(used)]
    return f"| {' | '.join(cells)} | {statistics.median(unknown):.0f} |"


def measure(pid: int) -> tuple[float, float, int]:
    """Return the wall time and the CPU time of one command, and the threads without a stack."""
    began, used = time.monotonic(), _used()
    command = [LOCKTOP, "stacks", "-p", str(pid), "--format", "json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    took = time.monotonic() - began
    return took, _used() - used, json.loads(done.stdout)["unknown"]


def seconds(values: Sequence[float]) -> str:
    """Return the least and the median."""
    return f"{min(values):.2f} / {statistics.median(values):.2f} s"


def _used() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print the table."""
    print("| Program | Wall | CPU | Stacks not known |")
    with tempfile.TemporaryDirectory() as directory:
        compiler = Compiler(Path(directory))
        for threads in map(int, sys.argv[1].split()):
            for preloaded in (True, False):
                print(row(compiler, threads, preloaded), flush=True)


if __name__ == "__main__":
    main()
