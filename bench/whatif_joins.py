"""Compares predictions for threads that are started and joined again and again with the truth.

    PYTHONPATH=tests .venv/bin/python bench/whatif_joins.py

The program is tests/targets/whatif/starts_and_joins.c, and the change is half the hold. The program
runs unchanged and changed in turns, without the library. The truth is the median ratio of its own
counts.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from support import tool
from support.targets import Compiler, Target
from whatif_table import Result, Table

from locktop.collector.sources.launch import preload_environment

#: Seconds of a run and of a recording, and runs of each program.
_SECONDS, _RECORDED_S, _ROUNDS = 2.0, 4, 3
_BEGIN_S = 0.3


class Case(NamedTuple):
    """The arguments of the program."""

    threads: int
    hold_us: int
    work: str  # sleep, compute, both


_CASES = (
    Case(4, 600, "sleep"),
    Case(2, 600, "compute"),
    Case(4, 600, "compute"),
    Case(6, 1000, "compute"),
    Case(4, 600, "both"),
    Case(8, 300, "both"),
)


def _started(program: Path, case: Case, environment: Mapping[str, str]) -> Target:
    return Target([program, *map(str, case)], environment)


def rate(program: Path, case: Case) -> float:
    """Return the rounds of starts a second, as the program counts them."""
    with _started(program, case, {}) as target:
        target.expect("ready")
        counts = []
        for pause_s in (_BEGIN_S, _SECONDS):
            time.sleep(pause_s)
            target.go_on()
            counts.append(target.truth())
    first, last = counts
    return float((last["rounds"][0] - first["rounds"][0]) / (last["seconds"] - first["seconds"]))


def predicted(program: Path, case: Case) -> dict[str, Any]:
    """Return the answer of `locktop whatif` for half the hold."""
    with _started(program, case, preload_environment(None)) as target:
        target.expect("ready")
        time.sleep(_BEGIN_S)
        options = ["-d", _RECORDED_S, "--format", "json", "--hold", "mutex=0.5x"]
        done = tool.run("whatif", "-p", target.pid, *options)
    if done.returncode not in (0, 3):
        raise SystemExit(done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def compare(program: Path, case: Case, table: Table) -> None:
    """Add the prediction and the truth of a case to the table."""
    name = f"{case.threads} {case.work}"
    answer = predicted(program, case)
    note = f"hold {case.hold_us} us, replay {answer['replayed']:.3f}"
    if answer["refusal"]:
        table.refuse(name, answer["refusal"], note)
        return
    [found] = answer["predictions"]
    changed = case._replace(hold_us=case.hold_us // 2)
    truth = statistics.median(rate(program, changed) / rate(program, case) for _ in range(_ROUNDS))
    result = Result(name, "half the hold", found["ratio"], found["low"], found["high"], truth)
    table.add([result], note)


def main() -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    table = Table()
    with tempfile.TemporaryDirectory() as directory:
        program = Compiler(Path(directory)).program("starts_and_joins")
        for case in _CASES:
            compare(program, case, table)
    table.print_summary()


if __name__ == "__main__":
    main()
