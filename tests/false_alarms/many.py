"""Many runs, two at a time, while other processes keep the processors busy."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

from false_alarms.programs import Healthy
from false_alarms.run import Result, run

PARALLEL_RUNS = 2
#: The share of each sort in ten runs; real programs take longer.
_SHARES = {"fighting": 5, "near misses": 4, "real": 1}


@dataclass
class Totals:
    """The results of many runs, added up."""

    runs: Counter[str] = field(default_factory=Counter)
    scans: Counter[str] = field(default_factory=Counter)
    with_false_findings: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """Add the result of one run."""
        self.runs[result.name] += 1
        self.scans[result.name] += result.scans
        if result.false_findings:
            self.with_false_findings.append(result)


def chosen(programs: dict[str, list[Healthy]], count: int, seed: int) -> list[Healthy]:
    """Return ``count`` programs to run, in random order.

    Each sort has its share, and the programs of one sort occur equally often.
    """
    chance = random.Random(seed)
    found: list[Healthy] = []
    shares = sum(_SHARES[sort] for sort in programs)
    for sort, members in programs.items():
        chance.shuffle(members)
        wanted = ceil(count * _SHARES[sort] / shares)
        found += (members * ceil(wanted / len(members)))[:wanted]
    chance.shuffle(found)
    return found[:count]


def run_all(
    programs: list[Healthy], seed: int, directory: Path, report: Callable[[Result], None]
) -> Totals:
    """Run each program once, and call ``report`` with each result as soon as the run ends."""
    totals = Totals()
    with _busy_processors(), ProcessPoolExecutor(PARALLEL_RUNS) as pool:
        runs = [
            pool.submit(run, program, f"{seed}:{number}", directory)
            for number, program in enumerate(programs)
        ]
        for future in as_completed(runs):
            totals.add(future.result())
            report(future.result())
    return totals


@contextmanager
def _busy_processors() -> Iterator[None]:
    """Run one busy process of low priority for each processor."""
    loops = [
        subprocess.Popen(["nice", "-n", "12", sys.executable, "-c", "while True: pass"])
        for _ in range(os.cpu_count() or 1)
    ]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
