"""Measures the cost of sampling a process from outside (docs/overhead.md).

    make outside-bench TURNS=100

The first table has the CPU time of the tool at two scans a second. The stacks of all sleeping
threads are known then. The columns are each scan, samples and scans together, and both with the
screen. The terminal has 120 columns and 40 lines. A virtual machine also counts the time in which
other machines had its processors. Beside the scans, a process therefore does a fixed amount of work
as often as the scans. A column has the CPU time of that work.

The second table has the loss of a watched process. The process runs on one processor and the tool
on another. In turns of half a second the tool is stopped, or scans twice a second, or scans without
a pause. Scans without a pause make a small loss measurable. Each ratio is of two successive turns.
"best" is the ratio of the best turns of each kind, which a busy machine disturbs least.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from support.targets import Compiler, Target
from tool_costs import (
    INTERVAL_S,
    cpu_seconds,
    cpu_shares,
    milliseconds,
    on_screen,
    percents,
    scan_costs,
)

from locktop.collector.sources.base import Source
from locktop.collector.sources.launch import preload_environment
from locktop.collector.sources.preload.source import PreloadSource
from locktop.collector.sources.sampling.source import SamplingSource

SCANS = 20
WARM_UP = 60  # scans
STEPS = 300_000  # of the work that is always the same: some 15 ms

#: The watched programs: name, program and arguments, with the library or not.
WATCHED = (
    ("7 threads in pools", ("six_pools", "1"), False),
    ("499 threads in pools", ("six_pools", "83"), False),
    ("501 threads, half of them move", ("thousand_threads", "500"), False),
    ("1,001 threads, half of them move", ("thousand_threads", "1000"), False),
    ("499 threads in pools, with the library", ("six_pools", "83"), True),
    ("501 threads, half of them move, with the library", ("thousand_threads", "500"), True),
)
UNWATCHED = "unwatched"
#: The programs that lose speed: name and arguments of
#: tests/targets/contention/threads_take_turns.c.
TURNING = (
    ("4 threads take turns at a mutex", ("lock", "4")),
    ("32 threads take turns at a mutex", ("lock", "32")),
    ("one thread computes", ("compute", "1")),
)


def cost(compiler: Compiler, name: str, command: Sequence[str], preloaded: bool) -> str:
    """Return a row of the first table."""
    program, *arguments = command
    environment = preload_environment(None) if preloaded else None
    with Target([compiler.program(program), *arguments], environment) as target:
        target.expect("ready")
        source: Source = PreloadSource(target.pid) if preloaded else SamplingSource(target.pid)
        with closing(source):
            for _ in range(WARM_UP):
                source.scan()
            with same_work() as worked:
                took, shares = scan_costs(source, SCANS)
        with on_screen(target.pid) as tool:
            time.sleep(WARM_UP * INTERVAL_S)
            with_screen = cpu_shares(tool, SCANS)
    return (
        f"| {name} | {milliseconds(took)} | {milliseconds(worked)}"
        f" | {percents(shares)} | {percents(with_screen)} |"
    )


@contextlib.contextmanager
def same_work() -> Iterator[list[float]]:
    """Run a process that does a fixed amount of work as often as scans are made.

    The yielded list has the CPU seconds of each piece of work, after the end of the context.
    """
    took: list[float] = []
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, __file__, "--work"], stdin=pipe, stdout=pipe, text=True
    ) as worker:
        try:
            yield took
        finally:
            said, _ = worker.communicate()
            took += map(float, said.split())


def work() -> None:
    """Do the fixed work until standard input ends; print the CPU seconds of each piece."""
    while not select.select([sys.stdin], [], [], INTERVAL_S)[0]:
        before, done = time.thread_time(), 0
        for step in range(STEPS):
            done += step
        print(time.thread_time() - before)


class Turn(NamedTuple):
    """The work of a program in one turn, and the tool's CPU share in that turn."""

    per_s: float
    cpu_us: float  # CPU time of the program for each piece of work
    share: float


class Watcher:
    """The tool as a process on its own processor; the process is stopped except in its turns."""

    def __init__(self, pid: int, cpu: int, interval_s: float) -> None:
        command = [sys.executable, __file__, "--watch", str(pid), str(interval_s)]
        self._process = subprocess.Popen(
            ["taskset", "-c", str(cpu), *command], stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"scanned\n"
        self._process.send_signal(signal.SIGSTOP)

    def cpu_s(self) -> float:
        """Return the CPU time of the tool until now."""
        return cpu_seconds(self._process.pid)

    def __enter__(self) -> Watcher:
        self._process.send_signal(signal.SIGCONT)
        return self

    def __exit__(self, *error: object) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def take_turn(target: Target, watcher: Watcher | None) -> Turn:
    """Let the program run for half a second, watched or unwatched."""
    with watcher or contextlib.nullcontext():
        used_s = watcher.cpu_s() if watcher else 0.0
        began, turns, cpu_s = query(target)
        time.sleep(INTERVAL_S)
        ended, turns_then, cpu_then_s = query(target)
        used_s = watcher.cpu_s() - used_s if watcher else 0.0
    done, took_s = turns_then - turns, ended - began
    return Turn(done / took_s, 1e6 * (cpu_then_s - cpu_s) / done, used_s / took_s)


def query(target: Target) -> tuple[float, int, float]:
    target.go_on()
    said = target.truth()
    return time.monotonic(), said["turns"], said["cpu_s"]


def loss(compiler: Compiler, name: str, arguments: Sequence[str], rounds: int) -> list[str]:
    """Return the rows of the second table for one program."""
    own, other = sorted(os.sched_getaffinity(0))[:2]
    command = ["taskset", "-c", str(own), compiler.program("threads_take_turns"), *arguments]
    with Target(command) as target:
        target.expect("ready")
        watchers = {"twice a second": INTERVAL_S, "without a pause": 0.0}
        how: dict[str, Watcher | None] = {UNWATCHED: None}
        try:
            for one, interval_s in watchers.items():
                how[one] = Watcher(target.pid, other, interval_s)
            found: dict[str, list[Turn]] = {one: [] for one in how}
            for number in range(rounds):
                order = list(how)[number % 3 :] + list(how)[: number % 3]
                for one in order:
                    found[one].append(take_turn(target, how[one]))
        finally:
            for watcher in filter(None, how.values()):
                watcher.end()
    return [row(name, one, found[UNWATCHED], found[one]) for one in watchers]


def row(name: str, how: str, unwatched: Sequence[Turn], watched: Sequence[Turn]) -> str:
    cells = [name, how, f"{100 * statistics.median(turn.share for turn in watched):.1f} %"]
    pairs = list(zip(watched, unwatched, strict=True))
    best = max(turn.per_s for turn in watched) / max(turn.per_s for turn in unwatched)
    best_cost = min(turn.cpu_us for turn in watched) / min(turn.cpu_us for turn in unwatched)
    for ratios, extreme in (
        ([one.per_s / other.per_s for one, other in pairs], best),
        ([one.cpu_us / other.cpu_us for one, other in pairs], best_cost),
    ):
        low, middle, high = statistics.quantiles(ratios, n=4)
        cells += [f"{middle:.3f}", f"{low:.3f}-{high:.3f}", f"{extreme:.3f}"]
    return f"| {' | '.join(cells)} |"


def watch(pid: int, interval_s: float) -> None:
    """Scan a process until killed."""
    with closing(SamplingSource(pid)) as source:
        source.scan()
        print("scanned", flush=True)
        while True:
            source.scan()
            time.sleep(interval_s)


def main() -> None:
    if sys.argv[1] == "--watch":
        watch(int(sys.argv[2]), float(sys.argv[3]))
        return
    if sys.argv[1] == "--work":
        work()
        return
    rounds = int(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="locktop-bench-") as directory:
        compiler = Compiler(Path(directory))
        print("| | a scan, least / median | the same work | of a processor in all", end="")
        print(" | with the screen |")
        print("| --- |" + " ---: |" * 4)
        for case in WATCHED:
            print(cost(compiler, *case), flush=True)
        if len(os.sched_getaffinity(0)) < 2:
            return
        print("\n| | scanned | the tool | turns | quartiles | best", end="")
        print(" | processor time | quartiles | best |")
        print("| --- | --- |" + " ---: |" * 7)
        for name, arguments in TURNING:
            print(*loss(compiler, name, arguments, rounds), sep="\n", flush=True)


if __name__ == "__main__":
    main()
