"""Measures what wake-ups on another CPU cost a program that switches at each hold.

    PYTHONPATH=tests .venv/bin/python bench/wakeups.py [ROUNDS]

The program is the worst case of bench/inside.py. Its three threads share one CPU, a hold takes 2
us, and each hold has three context switches. In most states, a process without any code of locktop
wakes on another CPU, so many times a second. In the last state, locktop copies the records of all
holds. The copies need hundreds of wake-ups a second as well.

A round has each state once, in a random order. The work is the number of context switches for each
second of the program's CPU time. No scan is made. A scan may give a running holder an event, and
each context switch then takes longer for a second.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from inside import cpu_seconds, one_cpu, switches, wakes
from support.targets import Compiler, Target

from locktop.collector.shm.ring_drain import RingDrain
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.collector.sources.launch import preload_environment

ROUNDS = 15
#: Seconds before a measurement, and its length.
SETTLE_S, LENGTH_S = 0.4, 0.3
#: Wake-ups in a second.
RATES = (5, 25, 100, 1000)
QUIET, COPIES = "no wake-ups", "locktop copies the records"


@contextmanager
def copies(source: Source) -> Iterator[None]:
    """Copy the records of all rings, as samples inside locks do, in a thread of this process."""
    stopped = threading.Event()
    drain = source.drain(0)

    def copy() -> None:
        with closing(drain):
            while not stopped.is_set():
                take(drain)

    thread = threading.Thread(target=copy)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        drain.hurry()
        thread.join()


def take(drain: RingDrain) -> None:
    """Take the records of a quarter of a second."""
    drain.take(0.25)


def work(pid: int) -> float:
    """Return the context switches for each second of CPU time, of a measurement."""
    time.sleep(SETTLE_S)
    first, cpu_s = switches(pid), cpu_seconds(pid)
    time.sleep(LENGTH_S)
    return (switches(pid) - first) / (cpu_seconds(pid) - cpu_s)


def measured(source: Source, pid: int, rounds: int) -> dict[str, list[float]]:
    """Return how much slower the program is in each state, percent of each round."""
    states = [QUIET, *(f"{rate} wake-ups a second" for rate in RATES), COPIES]
    costs: dict[str, list[float]] = {state: [] for state in states[1:]}
    for _ in range(rounds):
        found = {}
        for state in random.sample(states, len(states)):
            if state == QUIET:
                found[state] = work(pid)
                continue
            is_copied = state == COPIES
            with copies(source) if is_copied else wakes(int(state.split()[0])):
                found[state] = work(pid)
        for state, known in costs.items():
            known.append(100 * (1 - found[state] / found[QUIET]))
    return costs


def main() -> None:
    """Print the cost of each state."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as directory:
        compiler = Compiler(Path(directory))
        program = [compiler.program("shares_inside_lock", "-O2"), "yields", "200"]
        with Target(program, preload_environment(None)) as target:
            target.expect("ready")
            one_cpu(target.pid)
            with closing(attach(target.pid)) as source:
                for state, costs in measured(source, target.pid, rounds).items():
                    error = statistics.stdev(costs) / len(costs) ** 0.5
                    mean = statistics.mean(costs)
                    print(f"{state}: {mean:5.2f} % slower, standard error {error:.2f}")


if __name__ == "__main__":
    main()
