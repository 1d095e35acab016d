"""Measures what the search for holders that no lock names costs, in CPU time of the tool.

    PYTHONPATH=tests .venv/bin/python bench/holder_costs.py SECONDS COMMAND...

The command is a program without the library. This process scans it twice a second, as the screen
does. Each part of a scan is a row, with its share of one CPU by the clock of its thread.
"""

from __future__ import annotations

import functools
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tool_costs import INTERVAL_S

from locktop.collector.analysis import waiter_peers
from locktop.collector.analysis.sampled_queues import QueueSamples
from locktop.collector.sources.attach import attach
from locktop.collector.sources.preload.peer_processes import PeerProcesses
from locktop.collector.sources.probes.gil_holders import GilHolders
from locktop.collector.sources.probes.probable_holders import ProbableHolders
from locktop.collector.sources.sampling.gil_waits import GilWaits

#: Scans before the measurement: names and stacks are new only once.
_WARM_UP = 20
_PARTS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (ProbableHolders, ("annotate",)),
    (GilWaits, ("note_turns", "goes_on")),
    (GilHolders, ("find_deadlocks", "describe_locks", "annotate", "confirm")),
    (QueueSamples, ("add", "find")),
    (waiter_peers, ("to_query", "only_peers", "find")),
    (PeerProcesses, ("threads",)),
)


class _Costs:
    """The CPU seconds of each part."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def count(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that counts its CPU time. A generator counts until its end."""

        @functools.wraps(function)
        def counting(*arguments: Any, **options: Any) -> Any:
            began = time.thread_time()
            result = function(*arguments, **options)
            if hasattr(result, "__next__"):
                result = iter(list(result))
            self.seconds[part] += time.thread_time() - began
            return result

        return counting


def _memory_mb() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def _measure(pid: int, seconds: float) -> None:
    costs = _Costs()
    for owner, names in _PARTS:
        part = owner.__name__.rpartition(".")[2]
        for name in names:
            setattr(owner, name, costs.count(part, getattr(owner, name)))
    memory_mb = [_memory_mb()]
    with closing(attach(pid)) as source:
        for number in range(_WARM_UP + round(seconds / INTERVAL_S)):
            if number == _WARM_UP:
                memory_mb.append(_memory_mb())
                costs.seconds.clear()
                began, used = time.monotonic(), time.process_time()
            snapshot = source.scan()
            time.sleep(INTERVAL_S)
        length_s = time.monotonic() - began
        whole = (time.process_time() - used) / length_s
    named = sum(bool(lock.holders_probable) for lock in snapshot.locks)
    print(f"{len(snapshot.threads)} threads, {named} locks with probable holders")
    for part, used_s in costs.seconds.most_common():
        print(f"{part:20} {100 * used_s / length_s:6.2f} %")
    print(f"{'the whole process':20} {100 * whole:6.2f} %")
    memory_mb.append(_memory_mb())
    print("memory before, after the first scans, at the end, MB:", *map(round, memory_mb))


def main(seconds: str, *command: str) -> None:
    """Start the command and measure."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as target:
        time.sleep(2)
        try:
            _measure(target.pid, float(seconds))
        finally:
            target.kill()


if __name__ == "__main__":
    main(*sys.argv[1:])
