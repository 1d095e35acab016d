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

from alarms.programs import Healthy
from alarms.run import Ran, run

AT_A_TIME = 2
#: Of ten runs; real ones take longer.
_SHARES = {"fighting": 5, "near misses": 4, "real": 1}


@dataclass
class Sums:
    """What came of many runs."""

    runs: Counter[str] = field(default_factory=Counter)
    scans: Counter[str] = field(default_factory=Counter)
    alarmed: list[Ran] = field(default_factory=list)

    def add(self, ran: Ran) -> None:
        """Count one in."""
        self.runs[ran.name] += 1
        self.scans[ran.name] += ran.scans
        if ran.alerts:
            self.alarmed.append(ran)


def chosen(programs: dict[str, list[Healthy]], count: int, seed: int) -> list[Healthy]:
    """Return what to run: of each sort its share, of a sort each as often as the others."""
    chance = random.Random(seed)
    found: list[Healthy] = []
    shares = sum(_SHARES[sort] for sort in programs)
    for sort, some in programs.items():
        chance.shuffle(some)
        wanted = ceil(count * _SHARES[sort] / shares)
        found += (some * ceil(wanted / len(some)))[:wanted]
    chance.shuffle(found)
    return found[:count]


def run_all(
    programs: list[Healthy], seed: int, directory: Path, say: Callable[[Ran], None]
) -> Sums:
    """Run each once; ``say`` hears of each when it is over."""
    sums = Sums()
    with _busy(), ProcessPoolExecutor(AT_A_TIME) as pool:
        runs = [
            pool.submit(run, program, f"{seed}:{number}", directory)
            for number, program in enumerate(programs)
        ]
        for one in as_completed(runs):
            sums.add(one.result())
            say(one.result())
    return sums


@contextmanager
def _busy() -> Iterator[None]:
    """As many processes as there are processors, each busy, and behind the others in the queue."""
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
