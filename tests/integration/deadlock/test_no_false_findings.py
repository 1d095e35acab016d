"""Nothing is told of programs in which nothing is wrong, however they fight and whenever one looks.

A few runs; `make false-alarms RUNS=1000` for as many as one likes.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from false_alarms.many import chosen, run_all
from false_alarms.programs import MISUSE, POSSIBLE, POTENTIAL, Healthy, all_healthy
from false_alarms.run import run
from support.targets import Compiler

RUNS = 40


def test_no_false_alarm(compiler: Compiler, tmp_path: Path) -> None:
    seed = random.randrange(1 << 31)
    print(f"seed {seed}")
    programs = all_healthy(compiler)
    del programs["real"]  # they take long, and have tests of their own
    totals = run_all(chosen(programs, RUNS, seed), seed, tmp_path, print)
    assert totals.runs.total() == RUNS
    assert totals.with_false_alarms == []


#: What must not be told of a healthy program, told of one that is not.
@pytest.mark.parametrize(
    ("command", "alerts"),
    [
        (("scripted_threads", "stay", "lock a, meet 1, lock b", "lock b, meet 1, lock a"),
         ["certain", "exit status 1 of check", POTENTIAL]),
        (("scripted_threads", "e=0", "stay", "lock a, meet 1, get e",
          "post e, get e, meet 1, lock a"),
         [POSSIBLE]),
        (("mutex_orders", "inversion"), [POTENTIAL]),
        (("pthread_misuses", "others"), [MISUSE]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_an_alert(
    command: tuple[str, ...], alerts: list[str], compiler: Compiler, tmp_path: Path
) -> None:
    program, *arguments = command
    told: tuple[str, ...] = ()
    for lives_s in (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0):  # till it has come to that
        if len(told) < len(alerts):
            wrong = Healthy("wrong", (str(compiler.program(program)), *arguments), lives_s=lives_s)
            told = run(wrong, "1", tmp_path, "contended").false_alarms
    assert sorted(alarm.partition(":")[0].partition(" deadlock")[0] for alarm in told) == alerts
    assert list(tmp_path.glob("wrong-1-*.json"))
