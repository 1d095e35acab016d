"""Healthy programs under contention, scanned at random moments, have no findings.

`make false-alarms RUNS=1000` runs more of them.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from false_alarms.many import chosen, run_all
from false_alarms.programs import MISUSE, POSSIBLE, POTENTIAL, Healthy, all_healthy
from false_alarms.run import run
from support.targets import Compiler

RUNS = 16


def test_no_healthy_program_has_a_finding(compiler: Compiler, tmp_path: Path) -> None:
    seed = random.randrange(1 << 31)
    print(f"seed {seed}")
    programs = all_healthy(compiler)
    del programs["real"]  # these take long, and tests/programs runs them
    totals = run_all(chosen(programs, RUNS, seed), seed, tmp_path, print)
    assert totals.runs.total() == RUNS
    assert totals.with_false_findings == []


@pytest.mark.parametrize(
    ("command", "findings"),
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
def test_a_faulty_program_has_its_finding(
    command: tuple[str, ...], findings: list[str], compiler: Compiler, tmp_path: Path
) -> None:
    """The run that looks for false alarms would see them."""
    program, *arguments = command
    found: tuple[str, ...] = ()
    for lives_s in (0.5, 2.0, 4.0, 8.0, 16.0, 32.0):  # until the program has reached its fault
        if len(found) < len(findings):
            faulty = Healthy(
                "faulty", (str(compiler.program(program)), *arguments), lives_s=lives_s
            )
            found = run(faulty, "1", tmp_path, "contended").false_findings
    assert sorted(one.partition(":")[0].partition(" deadlock")[0] for one in found) == findings
    assert list(tmp_path.glob("faulty-1-*.json"))
