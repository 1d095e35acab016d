"""Compares `locktop whatif` with the profiler coz, for half the hold of a lock (docs/whatif.md).

    make whatif-coz
    PYTHONPATH=tests .venv/bin/python bench/whatif_coz.py [ROUNDS]

Four programs compute while they hold a lock. In each round, each of them runs in these ways, in an
order that changes:

- plain: without a tool
- half: with half the hold
- dormant: with the library, which does nothing
- all: with the library, which records every hold
- locktop: while `locktop whatif` predicts half the hold, from a recording of eight seconds
- coz 0: under coz, without a speedup
- coz 50: under coz, which speeds the line in the hold up by half

The truth is the rate of "half" as a multiple of that of "plain". All rates are those of the program
itself. The prediction of coz is the progress in "coz 50" as a multiple of that in "coz 0". As in
the viewer of coz, the visits and the durations of all rounds are added up. The range beside each
figure is that of the rounds. Beside the median prediction of locktop is its interval.

The output ends with the tables of docs/whatif.md. The last column is what locktop itself says
of its recording: acquisitions a second, as a multiple of those before.

Coz is the package coz-profiler, or the command that the environment variable COZ names. The package
needs debug information of an old form (FLAGS). Coz 0.2.2 aborts at DWARF 5, the default of
compilers.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from support import tool
from support.targets import Target, source_of
from whatif import Runs

from locktop.collector.sources.launch import preload_environment

FLAGS = ("-DCOZ", "-gdwarf-3")
#: Seconds of a run, of one under coz, and of a recording. An experiment of coz takes half a second.
SECONDS, COZ_SECONDS, RECORDED_S = 3.0, 9.0, 8
ROUNDS = 3
LOCK = "mutexes[40]"
COMMAND = os.environ.get("COZ", "coz")
#: The virtual speedup of each way under coz, percent.
COZ = {"coz 0": 0, "coz 50": 50}
#: The ways to run, beside the prediction of locktop.
WAYS = ("plain", "half", "dormant", "all", *COZ)
#: The ways whose throughput says what a tool costs.
KEPT = ("dormant", "all", "coz 0")
_EXPERIMENT = re.compile(
    r"speedup=([\d.]+)\tduration=(\d+)\tselected-samples=(\d+)\nthroughput-point.*delta=(\d+)"
)
_QUIET = 'exec "$@" 2>> "$COZ_LOG"'  # coz says each file that it reads


class Program(NamedTuple):
    """One program: what limits it, its threads and steps, and the hold that follows."""

    name: str
    limit: str
    rest: str
    hold_us: int
    varies: str = ""

    @property
    def spec(self) -> str:
        return f"{self.rest},L40,c{self.varies}{self.hold_us},U"

    @property
    def half(self) -> str:
        return f"{self.rest},L40,c{self.varies}{self.hold_us // 2},U"


PROGRAMS = (
    Program("hot", "two threads compute; the lock is the bottleneck", "2:c500", 2000),
    Program("partly", "two threads compute; the lock limits some rounds", "2:c~2000", 1000, "~"),
    Program("sleeps", "four threads; the lock limits some rounds", "4:s~4000,c500", 1000),
    Program("free", "six threads; the lock is seldom wanted", "6:s~8000,c500", 200),
)


class Experiments(NamedTuple):
    """Sums over the experiments of coz with one virtual speedup."""

    visits: int
    nanoseconds: int
    made: int

    @property
    def rate(self) -> float:
        return self.visits * 1e9 / self.nanoseconds


class Measured:
    """All figures of one program, by round."""

    def __init__(self) -> None:
        self.rates: dict[str, list[float]] = {way: [] for way in WAYS}
        self.answers: list[dict[str, Any]] = []
        self.experiments: dict[str, list[Experiments]] = {way: [] for way in COZ}

    def ratios(self, way: str) -> list[float]:
        """Return the rates of a way of running, as multiples of the plain ones."""
        return [
            one / plain for one, plain in zip(self.rates[way], self.rates["plain"], strict=True)
        ]


class Bench:
    """Runs the programs."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._runs = Runs(directory, *FLAGS)
        os.environ["COZ_LOG"] = str(directory / "log")
        lines = source_of("lock_rounds").read_text().split("\n")
        body = next(i for i, line in enumerate(lines) if "compute_inside(double" in line)
        self._line = f"lock_rounds.c:{body + 3}"  # lines count from 1; the loop is two lines on

    def run(self, program: Program, way: str, into: Measured) -> None:
        """Run the program once, and add what was measured."""
        if way == "locktop":
            into.answers.append(self._predicted(program))
        elif way in COZ:
            rate, experiments = self._under_coz(program, COZ[way])
            into.rates[way].append(rate)
            into.experiments[way].append(experiments)
        else:
            spec = program.half if way == "half" else program.spec
            library = preload_environment(way) if way in ("dormant", "all") else {}
            with self._runs.start([spec], library) as target:
                into.rates[way].append(rate_of(target, SECONDS))

    def _predicted(self, program: Program) -> dict[str, Any]:
        """Return the answer of `locktop whatif`."""
        change = ("--hold", f"{LOCK}=0.5x", "--format", "json")
        with self._runs.start([program.spec], preload_environment(None)) as target:
            done = tool.run("whatif", "-p", target.pid, "-d", RECORDED_S, *change)
        if done.returncode not in (0, 3):
            raise SystemExit(f"{program.name}: {done.stderr}")
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def _under_coz(self, program: Program, speedup: int) -> tuple[float, Experiments]:
        """Return the program's own rate, and what coz measured."""
        profile = self._directory / "profile.coz"
        profile.unlink(missing_ok=True)
        coz = [COMMAND, "run", "-o", profile, "--fixed-line", self._line]
        prefix = ["sh", "-c", _QUIET, "sh", *coz, "--fixed-speedup", speedup, "---"]
        with self._runs.start([program.spec], {}, [str(word) for word in prefix]) as target:
            rate = rate_of(target, COZ_SECONDS)
            status, _ = target.finish()
        if status != 0:
            raise SystemExit((self._directory / "log").read_text())
        return rate, experiments_of(profile.read_text(), speedup)


def rate_of(target: Target, seconds: float) -> float:
    """Return the rounds a second of a program, by its own clock."""
    target.go_on()
    first = target.truth()
    time.sleep(seconds)
    target.go_on()
    last = target.truth()
    rounds = sum(last["rounds"]) - sum(first["rounds"])
    return float(rounds / (last["seconds"] - first["seconds"]))


def experiments_of(profile: str, speedup: int) -> Experiments:
    """Add up the experiments of a profile of coz.

    Raises:
        SystemExit: coz made no experiment, or one with another speedup, or never saw the line.
    """
    found = _EXPERIMENT.findall(profile)
    nanoseconds, samples, visits = (sum(int(one[i]) for one in found) for i in (1, 2, 3))
    if samples == 0 or any(round(float(one[0]) * 100) != speedup for one in found):
        raise SystemExit(f"no experiments with the speedup {speedup}:\n{profile}")
    return Experiments(visits, nanoseconds, len(found))


def coz_prediction(measured: Measured) -> list[float]:
    """Return the prediction from all rounds, then that of each round."""
    pairs = list(zip(measured.experiments["coz 50"], measured.experiments["coz 0"], strict=True))
    added = [
        Experiments(*(sum(figures) for figures in zip(*side, strict=True)))
        for side in zip(*pairs, strict=True)
    ]
    return [added[0].rate / added[1].rate, *(fast.rate / plain.rate for fast, plain in pairs)]


def ranged(middle: float, values: list[float]) -> str:
    return f"{middle:.2f} ({min(values):.2f} to {max(values):.2f})"


def median(values: list[float]) -> str:
    return ranged(statistics.median(values), values) if values else "-"


class Row(NamedTuple):
    """The cells of one program in both tables."""

    name: str
    changes: tuple[str, ...]  # the truth, then the predictions of both tools
    kept: tuple[str, ...]  # the throughput with a tool, as a multiple of that without
    notes: tuple[str, ...]


def row(program: Program, measured: Measured) -> Row:
    """Return all cells of one program."""
    truth = measured.ratios("half")
    first, *others = coz_prediction(measured)
    kept = [measured.ratios(way) for way in KEPT]
    kept.append([one["recording_cost"] for one in measured.answers if one["recording_cost"]])
    made = sum(one.made for side in measured.experiments.values() for one in side)
    refusals = [f"locktop refused: {one['refusal']}" for one in measured.answers if one["refusal"]]
    return Row(
        name=program.name,
        changes=(median(truth), of_locktop(measured), ranged(first, others)),
        kept=tuple(median(ratios) for ratios in kept),
        notes=(f"{program.spec}: {program.limit}", f"{made} experiments of coz", *refusals),
    )


def of_locktop(measured: Measured) -> str:
    """Return the median prediction and its interval, or "refused"."""
    found = [one["predictions"][0] for one in measured.answers if not one["refusal"]]
    if not found:
        return "refused"
    middle = sorted(found, key=lambda one: one["ratio"])[(len(found) - 1) // 2]
    return f"{middle['ratio']:.2f} ({middle['low']:.2f} to {middle['high']:.2f})"


def table(heads: list[str], lines: list[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    rows = [tuple(heads), ("---",) * len(heads), *lines]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def main(rounds: int = ROUNDS) -> None:
    """Run each program in all ways, then tell."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if shutil.which(COMMAND) is None:
        raise SystemExit(f"there is no {COMMAND} here: install the package coz-profiler")
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(Path(directory))
        rows = []
        for program in PROGRAMS:
            measured = Measured()
            for number in range(rounds):
                order = [*WAYS, "locktop"]
                random.Random(number).shuffle(order)
                for way in order:
                    bench.run(program, way, measured)
            rows.append(row(program, measured))
            print(rows[-1].name, *rows[-1].notes, sep="\n  ", flush=True)
    changed = [(one.name, *one.changes) for one in rows]
    kept = [(one.name, *one.kept) for one in rows]
    print("", table(["Program", "Truth", "locktop", "coz"], changed), sep="\n")
    print("", table(["Program", *KEPT, "while locktop records"], kept), sep="\n")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
