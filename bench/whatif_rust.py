"""Compares predictions of `locktop whatif` for a Rust Mutex with shorter holds really made.

    PYTHONPATH=tests .venv/bin/python bench/whatif_rust.py [ROUNDS]

Each program holds a Mutex for 0.7, 0.5 and 0.2 times as long as before (docs/whatif.md). The
command predicts that from one recording of the unchanged program. Then the programs run in turns,
without the library. The truth of a change is the median ratio of the rounds a second.

A sleep lasts longer than it should. So the command gets the factors that the programs measure.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from support import tool
from support.targets import Compiler, Target
from whatif_table import Result, Table

from locktop.collector.sources.launch import preload_environment

_SECONDS, _RECORDED_S = 1.0, 4
_FACTORS = (0.7, 0.5, 0.2)
#: Threads, the hold and the time between two holds, as the target reads them.
_PROGRAMS = (
    (2, "s2000", 500), (4, "s1000", 1000), (4, "s~2000", 2000), (8, "s500", 1500),
    (8, "s~1000", 4000), (8, "s2000", 4000), (16, "s1000", 6000), (16, "s~500", 2000),
    (32, "s500", 10000), (32, "s~1000", 20000), (2, "c1000", 500), (4, "c~1000", 2000),
    (8, "c500", 2000), (3, "s1000", 4000), (4, "s20", 20), (4, "c5", 20),
)  # fmt: skip


class Measured(NamedTuple):
    """The figures of a program without the library."""

    rounds_per_s: float
    hold_s: float  # of one round


def _command(program: Path, threads: int, hold: str, think: int, factor: float) -> list[Path | str]:
    kind = hold.rstrip("0123456789")
    return [program, str(threads), f"{kind}{round(int(hold[len(kind) :]) * factor)}", f"s~{think}"]


def _measure(command: list[Path | str]) -> Measured:
    with Target(command) as target:
        target.expect("ready")
        time.sleep(0.2)  # all threads have made some rounds
        target.go_on()
        first = target.truth()
        time.sleep(_SECONDS)
        target.go_on()
        last = target.truth()
    rounds, seconds, held_ns = (last[key] - first[key] for key in ("rounds", "seconds", "held_ns"))
    return Measured(rounds / seconds, held_ns / rounds / 1e9)


def _predicted(command: list[Path | str], factors: Mapping[float, float]) -> Any:
    with Target(command, preload_environment(None)) as target:
        target.expect("ready")
        options = [f"--hold=Rust Mutex={factor:.4f}" for factor in factors.values()]
        whatif = (tool.COMMAND, "whatif", "--format", "json")
        result = subprocess.run(
            [*whatif, "-p", str(target.pid), "-d", str(_RECORDED_S), *options],
            check=False,
            capture_output=True,
            text=True,
        )
    if result.returncode not in (0, 3):
        raise SystemExit(f"{command}: {result.stderr}")
    return json.loads(result.stdout)


def _results(
    program: Path, threads: int, hold: str, think: int, rounds: int
) -> Iterator[Result | str]:
    commands = {
        factor: _command(program, threads, hold, think, factor) for factor in (1.0, *_FACTORS)
    }
    runs: dict[float, list[Measured]] = {factor: [] for factor in commands}
    for _ in range(rounds):
        for factor, command in commands.items():
            runs[factor].append(_measure(command))
    holds_s = {
        factor: statistics.median(run.hold_s for run in of_factor)
        for factor, of_factor in runs.items()
    }
    factors = {factor: min(1.0, holds_s[factor] / holds_s[1.0]) for factor in _FACTORS}
    answer = _predicted(commands[1.0], factors)
    if answer["refusal"]:
        yield f"{answer['refusal']}, replay {answer['replayed']:.3f}"
    for prediction in answer["predictions"]:
        amount = prediction["amount"]
        factor = min(_FACTORS, key=lambda each: abs(factors[each] - amount))
        pairs = zip(runs[factor], runs[1.0], strict=True)
        yield Result(
            program=f"{threads} {hold} s~{think}",
            change=f"{factor:g}",
            predicted=prediction["ratio"],
            low=prediction["low"],
            high=prediction["high"],
            truth=statistics.median(run.rounds_per_s / base.rounds_per_s for run, base in pairs),
        )


def main(rounds: int = 3) -> None:
    """Print the table."""
    table = Table()
    with tempfile.TemporaryDirectory() as directory:
        program = Compiler(Path(directory)).program("rust_rounds", "-O")
        for threads, hold, think in _PROGRAMS:
            of_program = []
            for result in _results(program, threads, hold, think, rounds):
                if isinstance(result, str):
                    table.refuse(f"{threads} {hold} s~{think}", result)
                else:
                    of_program.append(result)
            table.add(of_program)
    table.print_summary()


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
