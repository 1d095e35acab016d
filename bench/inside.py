"""Measures what samples inside locks cost the program and the tool (docs/overhead.md).

    make inside-bench
    PYTHONPATH=tests .venv/bin/python bench/inside.py [ROUNDS [RATE [LENGTH]]]

Three threads fight for a lock and compute while they hold it. A round has a part without samples
and one with them, in an order that changes. The work is the number of acquisitions for each second
of the program's CPU time.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from support.targets import Compiler, Target

from locktop.collector.model.inside import RATE
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.collector.sources.launch import preload_environment

#: Seconds of a part, and those before it for what the first samples need.
PART_S, WARM_S = 3.0, 1.0
SCAN_S = 0.5
ROUNDS = 11
#: A hold of some 2 ms.
LENGTH = "200000"


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of all living threads of a process, seconds."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def acquisitions(source: Source) -> int:
    """Return how often threads have taken the lock."""
    return next(lock.acquisitions or 0 for lock in source.scan().locks if lock.name == "g_outer")


def part(source: Source, pid: int, rate: float | None) -> tuple[float, float]:
    """Return the work of the program in some time, and the CPU share of the tool.

    Args:
        source: the program.
        pid: its process id.
        rate: samples in a second; None: no samples.
    """
    if rate is not None:
        source.profile_inside(None, rate)
    source.scan()
    time.sleep(WARM_S)
    first, cpu_s = acquisitions(source), cpu_seconds(pid)
    began, own_s = time.monotonic(), time.process_time()
    while time.monotonic() < began + PART_S:
        time.sleep(SCAN_S)
        source.scan()
    own_share = (time.process_time() - own_s) / (time.monotonic() - began)
    work = (acquisitions(source) - first) / (cpu_seconds(pid) - cpu_s)
    source.end_profile()
    return work, own_share


def measured(source: Source, pid: int, rate: float, rounds: int) -> str:
    """Return a line of the table: costs in percent, with the standard error of the mean."""
    costs, shares = [], []
    for number in range(rounds):
        order = (None, rate) if number % 2 else (rate, None)
        found = {one: part(source, pid, one) for one in order}
        costs.append(100 * (1 - found[rate][0] / found[None][0]))
        shares.append(100 * (found[rate][1] - found[None][1]))
    error = statistics.stdev(costs) / len(costs) ** 0.5
    return (
        f"{rate:6.0f} Hz: the program {statistics.mean(costs):5.2f} % slower,"
        f" standard error {error:.2f}; the tool {statistics.mean(shares):4.1f} % of a CPU"
    )


def main() -> None:
    """Print the costs of a rate."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    rate = float(sys.argv[2]) if len(sys.argv) > 2 else RATE
    length = sys.argv[3] if len(sys.argv) > 3 else LENGTH
    with tempfile.TemporaryDirectory() as directory:
        compiler = Compiler(Path(directory))
        program = [compiler.program("shares_inside_lock", "-O2"), "compute", length]
        with Target(program, preload_environment(None)) as target:
            target.expect("ready")
            with closing(attach(target.pid)) as source:
                source.scan(resolve=True)
                print(measured(source, target.pid, rate, rounds))


if __name__ == "__main__":
    main()
