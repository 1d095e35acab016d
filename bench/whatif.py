"""Compares predictions of `locktop whatif` with the changes really made (docs/whatif.md).

    make whatif-bench
    PYTHONPATH=tests .venv/bin/python bench/whatif.py [PROGRAMS [FIRST [ROUNDS]]]

Each program is generated: its number is the seed. The command predicts three changes of one
recording of it. They are half the hold of the hot lock, a split of this lock, and half of the
threads. Then the program runs unchanged and with each change, in turns. The truth of a change is
the median ratio of the rounds a second.

The table has the error of each prediction, and says whether the interval has the truth. The last
lines say how often the best of the three changes was named. Changes whose truths differ by less
than 3 % are equally good. bench/whatif_real.py does the same with real programs.
"""

from __future__ import annotations

import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from support import tool
from support.targets import Compiler, Target
from whatif_table import Result, Table

from locktop.collector.sources.launch import preload_environment

#: The number of the hot lock, and the locks that it is split into.
_HOT, _PARTS = 40, 4
_SECONDS, _RECORDED_S = 0.8, 4
_TIME = re.compile(r"([cs]~?)(\d+)")


class Made(NamedTuple):
    """A generated program, and the same program after each change."""

    name: str
    spec: list[str]
    changed: dict[str, list[str]]  # by change
    by_lock: bool  # the acquisitions of the hot lock are the rounds


def generated(seed: int) -> Made:
    """Return a program: threads that sleep or compute, with some locks."""
    rng = random.Random(seed)
    form = ("single", "two", "nested", "striped", "readers", "queue", "groups", "skewed")[seed % 8]
    computes = rng.random() < 0.4
    threads = rng.choice((2, 3, 4, 6, 8) if computes else (2, 4, 8, 16, 24, 32, 64))
    work = ("c" if computes else "s") + ("~" if rng.random() < 0.4 else "")
    hold = rng.choice((50, 100, 200, 400)) if computes else rng.choice((300, 600, 1000, 2000))
    # The load of the hot lock: below 1 it waits for the threads, above 1 they wait for it.
    think = max(50, round(hold * (threads / rng.uniform(0.5, 3.0) - 1)))
    hot = f"L{_HOT},{work}{hold},U"
    if form == "two":
        spec = [f"{threads}:{work}{think},{hot},{work}{think // 2},L1,{work}{hold // 2},U"]
    elif form == "nested":
        spec = [f"{threads}:{work}{think},L1-8,{work}{hold // 2},{hot},U"]
    elif form == "striped":
        spec = [f"{threads}:{work}{think},L1-10,{work}{hold},U,{hot}"]
    elif form == "readers":
        writers = max(1, threads // 4)
        spec = [
            f"{threads}:{work}{think},{hot.replace('L', 'R')}",
            f"{writers}:{work}{think},{hot.replace('L', 'W')}",
        ]
    elif form == "queue":
        spec = [f"{threads}:{work}{think},P1", f"{threads}:G1,{work}{think // 2},{hot}"]
    elif form == "groups":
        other = max(1, threads // 2)
        spec = [f"{threads}:{work}{think},{hot}", f"{other}:{work}{2 * think},{hot}"]
    elif form == "skewed":
        spec = [f"{threads}:{work}{think},{hot},{work}{think},L1-3,{work}{hold // 4},U"]
    else:
        spec = [f"{threads}:{work}{think},{hot}"]
    changed = {
        "hold": [_half_hold(group) for group in spec],
        "split": [re.sub(rf"([LRW]){_HOT}", rf"\g<1>{_HOT}-{_HOT + _PARTS - 1}", g) for g in spec],
        "threads": [_half_threads(spec[0]), *spec[1:]],
    }
    return Made(f"{seed}-{form}", spec, changed, len(spec) > 1)


def _half_hold(group: str) -> str:
    return re.sub(rf"([LRW]{_HOT},)([cs]~?)(\d+)", lambda m: f"{m[1]}{m[2]}{int(m[3]) // 2}", group)


def _half_threads(group: str) -> str:
    count, steps = group.split(":")
    return f"{max(1, int(count) // 2)}:{steps}"


class Runs:
    """Runs of the target, all with the same speed of computing."""

    def __init__(self, directory: Path, *flags: str) -> None:
        self._program = Compiler(directory).program("lock_rounds", "-lm", *flags)
        with Target([self._program, "1:s1000"]) as target:
            target.expect("ready")
            target.go_on()
            truth = target.truth()
        self.sleep_extra_us: float = truth["sleep_extra_us"]
        self._speed = {"LOOPS_PER_US": str(truth["loops_per_us"])}

    def start(
        self, spec: list[str], environment: Mapping[str, str], prefix: Sequence[str] = ()
    ) -> Target:
        """Start the target, or ``prefix`` with the target as its last arguments."""
        target = Target([*prefix, self._program, *spec], {**environment, **self._speed})
        target.expect("ready")
        time.sleep(0.2)  # all threads have made some rounds
        return target

    def rounds_per_s(self, spec: list[str]) -> list[float]:
        """The rounds a second of each group, without the library."""
        with self.start(spec, {}) as target:
            target.go_on()
            first = target.truth()
            time.sleep(_SECONDS)
            target.go_on()
            last = target.truth()
        seconds = last["seconds"] - first["seconds"]
        pairs = zip(first["rounds"], last["rounds"], strict=True)
        return [(after - before) / seconds for before, after in pairs]


def predicted(runs: Runs, made: Made) -> dict[str, Any]:
    """Return the answer of the command for the three changes."""
    group = made.spec[0]
    us = int(re.search(rf"[LRW]{_HOT},[cs]~?(\d+)", "".join(made.spec))[1])  # type: ignore[index]
    extra = runs.sleep_extra_us if f"{_HOT},s" in group or f"{_HOT},s" in made.spec[-1] else 0.0
    factor = (us // 2 + extra) / (us + extra)
    kind = "rwlocks" if f"R{_HOT}" in group else "mutexes"
    lock, half = f"{kind}[{_HOT}]", max(1, int(group.split(":")[0]) // 2)
    options = ["--hold", f"{lock}={factor:.4f}", "--split", f"{lock}={_PARTS}"]
    options += ["--threads", f"group0={half}"]
    if made.by_lock:
        options += ["--throughput", lock]
    with runs.start(made.spec, preload_environment(None)) as target:
        command = [tool.COMMAND, "whatif", "-p", str(target.pid), "-d", str(_RECORDED_S)]
        result = subprocess.run(
            [*command, "--format", "json", *options],
            check=False,
            capture_output=True,
            text=True,
        )
    if result.returncode not in (0, 3):
        raise SystemExit(f"{made.name} {made.spec}: {result.stderr}")
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def truths(runs: Runs, made: Made, rounds: int) -> dict[str, list[float]]:
    """Return the ratios of throughputs, of each change in each round."""
    found: dict[str, list[float]] = {change: [] for change in made.changed}
    # In a queue all threads of the second group take the hot lock, and no others.
    first = 1 if "P1" in made.spec[0] else 0
    for number in range(rounds):
        order = list(made.changed)
        random.Random(number).shuffle(order)
        base = sum(runs.rounds_per_s(made.spec)[first:])
        for change in order:
            found[change].append(sum(runs.rounds_per_s(made.changed[change])[first:]) / base)
    return found


def measured(runs: Runs, made: Made, rounds: int) -> Iterator[Result | str]:
    answer = predicted(runs, made)
    if answer["refusal"]:
        yield f"{answer['refusal']}, replay {answer['replayed']:.3f}"
        return
    ratios = truths(runs, made, rounds)
    for one in answer["refused"]:
        yield f"{one['reason']}, {one['text']}"
    for one in answer["predictions"]:
        yield Result(
            program=made.name,
            change=one["kind"],
            predicted=one["ratio"],
            low=one["low"],
            high=one["high"],
            truth=statistics.median(ratios[one["kind"]]),
        )


def main(programs: int = 40, first: int = 0, rounds: int = 3) -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    table = Table()
    with tempfile.TemporaryDirectory() as directory:
        runs = Runs(Path(directory))
        for seed in range(first, first + programs):
            made = generated(seed)
            text = " ".join(made.spec)
            of_program = []
            for one in measured(runs, made, rounds):
                if isinstance(one, str):
                    table.refuse(made.name, one, text)
                else:
                    of_program.append(one)
            table.add(of_program, text)
    table.print_summary()


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
