"""Measures what samples inside locks cost the program and the tool (docs/overhead.md).

    make inside-bench
    PYTHONPATH=tests .venv/bin/python bench/inside.py [ROUNDS [RATE [LENGTH [WAY [SECONDS]]]]]

Three threads fight for a lock and compute while they hold it. A round has a part without samples
and one with them, in an order that changes. Each part has a new process: the kernel's state of an
earlier sampling would slow down the next part. The work is the number of acquisitions for each
second of the program's CPU time.

With the way "yields", the program has one CPU, and each holder lets another thread run. So the
number of context switches for each hold is the same in all parts. With "compute" and
short holds, this number differs by chance from one second to the next.

The environment variable EVENTS=threads lets each thread have an event, as for users without rights.
Threads that switch often then have samples in turns, with some 12 seconds from one turn to the
next. So a part must take 13 SECONDS. Programs with many context switches have samples in bursts,
one each 2.5 seconds. So a part with the way "yields" takes 6 SECONDS unless you say more.

With the environment variable AWAKE=100, another process wakes 100 times a second on another CPU, in
all parts. Such wake-ups alone may slow the program down (bench/wakeups.py). The figure is then what
the samples cost beside them.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from support.targets import Compiler, Target

from locktop.collector.extensions.inside.model import RATE
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.collector.sources.launch import preload_environment
from locktop.collector.symbols.unwind.perf_stream import SampleStream

#: Seconds before a part, for what the first samples need.
WARM_S = 0.5
#: Seconds of a part.
SECONDS, YIELDS_SECONDS = 1.5, 6.0
SCAN_S = 0.5
ROUNDS = 11
#: A hold of some 2 ms.
LENGTH = "200000"
_WAKES = "import sys, time\nwhile True: time.sleep(float(sys.argv[1]))"


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of all living threads of a process, seconds."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def acquisitions(source: Source) -> int:
    """Return how often threads have taken the lock."""
    return next(lock.acquisitions or 0 for lock in source.scan().locks if lock.name == "g_outer")


def switches(pid: int) -> int:
    """Return how often the threads of a process have left their CPUs."""
    lines = (
        line
        for task in Path(f"/proc/{pid}/task").glob("*/status")
        for line in task.read_text().splitlines()
    )
    return sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)


class Part(NamedTuple):
    """The figures of some seconds."""

    work: float  # acquisitions for each second of CPU time
    tool: float  # the CPU share of the tool
    switches: float  # for each acquisition


def part(program: list[str], rate: float | None, seconds: float) -> Part:
    """Return the figures of a new process.

    Args:
        program: the program with its arguments.
        rate: samples in a second; None: no samples.
        seconds: the length of the part.
    """
    with Target(program, preload_environment(None)) as target:
        target.expect("ready")
        if "yields" in program:
            one_cpu(target.pid)
        with closing(attach(target.pid)) as source:
            source.scan(resolve=True)
            if rate is not None:
                source.start_part("inside", None, rate)
            source.scan()
            time.sleep(WARM_S)
            return figures(source, target.pid, seconds)


@contextmanager
def wakes(rate: int) -> Iterator[None]:
    """Let another process wake on the last CPU, so many times a second; 0: no process."""
    if not rate:
        yield
        return
    command = [sys.executable, "-S", "-c", _WAKES, str(1 / rate)]
    process = subprocess.Popen(command)
    try:
        os.sched_setaffinity(process.pid, {max(os.sched_getaffinity(0))})
        yield
    finally:
        process.kill()
        process.wait()


def one_cpu(pid: int) -> None:
    """Let all threads of a process run on one CPU alone."""
    cpu = min(os.sched_getaffinity(pid))
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), {cpu})


def figures(source: Source, pid: int, seconds: float) -> Part:
    """Return the figures of some seconds."""
    first, cpu_s, switched = acquisitions(source), cpu_seconds(pid), switches(pid)
    began, own_s = time.monotonic(), time.process_time()
    while time.monotonic() < began + seconds:
        time.sleep(SCAN_S)
        source.scan()
    tool = (time.process_time() - own_s) / (time.monotonic() - began)
    switched, cpu_s = switches(pid) - switched, cpu_seconds(pid) - cpu_s
    taken = acquisitions(source) - first
    return Part(taken / cpu_s, tool, switched / taken)


def measured(program: list[str], rate: float, rounds: int, seconds: float) -> str:
    """Return a line of the table: costs in percent, with the standard error of the mean."""
    costs, shares, switched = [], [], []
    for number in range(rounds):
        order = (None, rate) if number % 2 else (rate, None)
        found = {one: part(program, one, seconds) for one in order}
        costs.append(100 * (1 - found[rate].work / found[None].work))
        shares.append(100 * (found[rate].tool - found[None].tool))
        switched.append([found[one].switches for one in (None, rate)])
    error = statistics.stdev(costs) / len(costs) ** 0.5
    before, after = (statistics.mean(one) for one in zip(*switched, strict=True))
    return (
        f"{rate:6.0f} Hz: the program {statistics.mean(costs):5.2f} % slower,"
        f" standard error {error:.2f}; the tool {statistics.mean(shares):4.1f} % of a CPU;"
        f" {before:.3f} context switches a hold, {after:.3f} with samples"
    )


def main() -> None:
    """Print the costs of a rate."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    rate = float(sys.argv[2]) if len(sys.argv) > 2 else RATE
    length = sys.argv[3] if len(sys.argv) > 3 else LENGTH
    way = sys.argv[4] if len(sys.argv) > 4 else "compute"
    least_s = YIELDS_SECONDS if way == "yields" else SECONDS
    seconds = float(sys.argv[5]) if len(sys.argv) > 5 else least_s
    if os.environ.get("EVENTS") == "threads":
        SampleStream.may_be_wide = property(lambda _: False, lambda *_: None)  # type: ignore
    with tempfile.TemporaryDirectory() as directory:
        compiler = Compiler(Path(directory))
        program = [compiler.program("shares_inside_lock", "-O2"), way, length]
        with wakes(int(os.environ.get("AWAKE", 0))):
            print(measured(program, rate, rounds, seconds))


if __name__ == "__main__":
    main()
