"""What it costs to sample a process from outside (docs/overhead.md).

    make outside-bench TURNS=60

The first table is what the tool takes of a processor with two looks a second, when the stacks of
what sleeps for good are known: samples, looks and all. The second is what a process loses that is
watched so: it runs on one processor and the tool on another one, in turns of half a second in which
the tool is stopped or not; ratios are of two turns right after each other.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from support.targets import Compiler, Target

from locktop.collector.launch import preload_environment
from locktop.collector.preload import PreloadSource
from locktop.collector.proc import ProcSource
from locktop.collector.source import Source

INTERVAL_S = 0.5  # from look to look
LOOKS = 20
WARM_UP = 60  # looks

#: What is watched: name, program and arguments, with the library or not.
WATCHED = (
    ("499 threads in pools", ("pools", "83"), False),
    ("501 threads, half of them move", ("hall", "500"), False),
    ("1,001 threads, half of them move", ("hall", "1000"), False),
    ("499 threads in pools, with the library", ("pools", "83"), True),
    ("501 threads, half of them move, with the library", ("hall", "500"), True),
)
#: What loses: name and arguments of tests/targets/turns.c.
TURNING = (
    ("4 threads take turns at a mutex", ("lock", "4")),
    ("32 threads take turns at a mutex", ("lock", "32")),
    ("one thread computes", ("compute", "1")),
)


def looks(source: Source, count: int) -> tuple[list[float], list[float]]:
    """Look so often; give what each look took of a processor, and what the whole process did
    meanwhile, of the time of one: seconds, shares."""
    took, shares = [], []
    at, used = time.monotonic(), time.process_time()
    for _ in range(count):
        before = time.thread_time()
        source.look()
        took.append(time.thread_time() - before)
        time.sleep(max(0.0, at + INTERVAL_S - time.monotonic()))
        now, now_used = time.monotonic(), time.process_time()
        shares.append((now_used - used) / (now - at))
        at, used = now, now_used
    return took, shares


def cost(compiler: Compiler, name: str, command: Sequence[str], preloaded: bool) -> str:
    """Return a row of the first table."""
    program, *arguments = command
    environment = preload_environment(None) if preloaded else None
    with Target([compiler.program(program), *arguments], environment) as target:
        target.expect("ready")
        source: Source = PreloadSource(target.pid) if preloaded else ProcSource(target.pid)
        with closing(source):
            for _ in range(WARM_UP):
                source.look()
            took, shares = looks(source, LOOKS)
    return (
        f"| {name} | {1000 * min(took):.1f} / {1000 * statistics.median(took):.1f} ms"
        f" | {100 * min(shares):.1f} / {100 * statistics.median(shares):.1f} % |"
    )


class Turn(NamedTuple):
    """What a program did."""

    per_s: float
    cpu_us: float  # of a processor, for each time that it did it


def take_turn(target: Target) -> Turn:
    def asked() -> tuple[float, float, float]:
        target.go_on()
        said = target.truth()
        return time.monotonic(), said["turns"], said["cpu_s"]

    began, turns, cpu_s = asked()
    time.sleep(INTERVAL_S)
    ended, turns_then, cpu_then_s = asked()
    done = turns_then - turns
    return Turn(done / (ended - began), 1e6 * (cpu_then_s - cpu_s) / done)


def quartiles(ratios: Sequence[float]) -> str:
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.4f} | {low:.4f}-{high:.4f}"


def loss(compiler: Compiler, name: str, arguments: Sequence[str], turns: int) -> str:
    """Return a row of the second table."""
    own, other = sorted(os.sched_getaffinity(0))[:2]
    command = ["taskset", "-c", str(own), compiler.program("turns"), *arguments]
    with Target(command) as target:
        target.expect("ready")
        watcher = subprocess.Popen(
            ["taskset", "-c", str(other), sys.executable, __file__, "--watch", str(target.pid)],
            stdout=subprocess.PIPE,
        )
        try:
            assert watcher.stdout is not None
            assert watcher.stdout.readline() == b"looked\n"
            pairs = [pair(target, watcher.send_signal, number) for number in range(turns)]
        finally:
            watcher.kill()
            watcher.wait()
    rates = [watched.per_s / bare.per_s for bare, watched in pairs]
    costs = [watched.cpu_us / bare.cpu_us for bare, watched in pairs]
    median = statistics.median(bare.per_s for bare, _ in pairs)
    return f"| {name} | {median:,.0f}/s | {quartiles(rates)} | {quartiles(costs)} |"


def pair(target: Target, tell: Callable[[int], None], number: int) -> tuple[Turn, Turn]:
    """A turn without the watcher and one with it; who begins changes."""
    found: dict[int, Turn] = {}
    orders = (signal.SIGSTOP, signal.SIGCONT)
    for order in orders if number % 2 else orders[::-1]:
        tell(order)
        found[order] = take_turn(target)
    return found[signal.SIGSTOP], found[signal.SIGCONT]


def watch(pid: int) -> None:
    """Look at a process until killed."""
    with closing(ProcSource(pid)) as source:
        looks(source, 4)
        print("looked", flush=True)
        while True:
            looks(source, 1)


def main() -> None:
    if sys.argv[1] == "--watch":
        watch(int(sys.argv[2]))
        return
    turns = int(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="locktop-bench-") as directory:
        compiler = Compiler(Path(directory))
        print("| | a look, least / median | of a processor in all, least / median |")
        print("| --- | ---: | ---: |")
        for case in WATCHED:
            print(cost(compiler, *case), flush=True)
        if len(os.sched_getaffinity(0)) < 2:
            return
        print("\n| | bare | watched / bare | quartiles | processor time | quartiles |")
        print("| --- | ---: | ---: | ---: | ---: | ---: |")
        for name, arguments in TURNING:
            print(loss(compiler, name, arguments, turns), flush=True)


if __name__ == "__main__":
    main()
