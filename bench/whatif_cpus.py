"""Compares predictions for more CPUs with the truth: programs on one CPU, then on two.

    PYTHONPATH=tests .venv/bin/python bench/whatif_cpus.py

The programs are those of tests/targets/whatif/lock_rounds.c. Their own counts give the truth, which
is the median ratio of runs in turns, without the library.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from support import tool
from support.targets import Compiler, Target
from whatif_programs.base import on_cpus
from whatif_table import Result, Table

from locktop.collector.sources.launch import preload_environment

#: Threads that sleep, and threads that compute.
_SPECS = (
    "16:s2000,L40,s1000,U",
    "32:s20000,L40,s300,U",
    "8:s3000,L40,s300,U,c50",
    "4:c1000,L40,c200,U",
    "6:c500,s500,L40,c100,U",
)
#: Seconds of a run and of a recording, and runs of each program.
_SECONDS, _RECORDED_S, _ROUNDS = 1.5, 3, 3
_BEGIN_S = 0.3


def _started(program: Path, spec: str, cpus: int, environment: Mapping[str, str]) -> Target:
    return Target(on_cpus([program, *spec.split()], cpus), environment)


def rate(program: Path, spec: str, cpus: int) -> float:
    """Return the rounds a second on so many CPUs, as the program counts them."""
    with _started(program, spec, cpus, {}) as target:
        target.expect("ready")
        counts = []
        for pause_s in (_BEGIN_S, _SECONDS):
            time.sleep(pause_s)
            target.go_on()
            counts.append(target.truth())
    first, last = counts
    rounds = sum(last["rounds"]) - sum(first["rounds"])
    return float(rounds / (last["seconds"] - first["seconds"]))


def compare(program: Path, spec: str, table: Table) -> None:
    """Add the prediction and the truth of a program to the table."""
    with _started(program, spec, 1, preload_environment(None)) as target:
        target.expect("ready")
        time.sleep(_BEGIN_S)
        options = ["-d", _RECORDED_S, "--format", "json", "--cpus", 2]
        done = tool.run("whatif", "-p", target.pid, *options)
    if done.returncode not in (0, 3):
        raise SystemExit(done.stderr)
    answer = json.loads(done.stdout)
    note = f"{spec}, replay {answer['replayed']:.3f}"
    if answer["refusal"]:
        table.refuse("1 CPU", answer["refusal"], note)
        return
    [found] = answer["predictions"]
    truth = statistics.median(
        rate(program, spec, 2) / rate(program, spec, 1) for _ in range(_ROUNDS)
    )
    result = Result("1 CPU", "2 CPUs", found["ratio"], found["low"], found["high"], truth)
    table.add([result], note)


def main() -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    table = Table()
    with tempfile.TemporaryDirectory() as directory:
        program = Compiler(Path(directory)).program("lock_rounds", "-lm")
        for spec in _SPECS:
            compare(program, spec, table)
    table.print_summary()


if __name__ == "__main__":
    main()
