"""Programs that hang as real services did: each `locktop check` has the same right answer.

The first comment of each program in tests/targets/hangs says what happens. The statuses must never
change from one check to the next: `make incidents` checks each program ten times.
"""

from __future__ import annotations

import json
import os
import re
import time

import pytest
from support import tool
from support.hangs import HANGS, Hang, hanging
from support.targets import PATIENCE_S, Compiler

FEW = 2
CHECKS = int(os.environ.get("LOCKTOP_INCIDENT_CHECKS", FEW))


@pytest.mark.parametrize("is_prepared", [True, False], ids=["prepared", "unprepared"])
@pytest.mark.parametrize("hang", HANGS, ids=lambda one: one.name)
def test_the_answer_is_right_each_time(hang: Hang, is_prepared: bool, compiler: Compiler) -> None:
    with hanging(hang, is_prepared, compiler) as pid:
        deadline = time.monotonic() + PATIENCE_S
        done = tool.run("check", "-p", pid)
        while done.returncode != hang.status and time.monotonic() < deadline:
            done = tool.run("check", "-p", pid)  # the program may not hang yet
        # Without the library each check of a doubtful wait takes 10 s.
        count = 1 if hang.status == 3 and CHECKS == FEW else CHECKS
        again = [tool.run("check", "-p", pid) for _ in range(count - 1)]
        assert [one.returncode for one in (done, *again)] == [hang.status] * count, done.stdout
        last = [done, *again][-1].stdout
        missing = [text for text in hang.texts if not re.search(text, last)]
        assert not missing, last
        assert not hang.never or not re.search(hang.never, last), last


def test_the_call_that_took_the_leaked_units_is_named(compiler: Compiler) -> None:
    hang = next(one for one in HANGS if one.name == "semaphore_units_leaked")
    taken = (
        r"all 3 units taken in borrow_connection"
        r" \(semaphore_units_leaked.c:\d+\), not given back: "
    )
    with hanging(hang, True, compiler) as pid:
        deadline = time.monotonic() + PATIENCE_S
        # None of the waiters waits for itself alone: any unit would do.
        whom = rf"deadlock: 6 threads of \S+ {pid} wait for sem g_slots, for "
        while True:
            said = tool.run("check", "-p", pid).stdout
            first, _, rest = said.partition("\n")
            if re.match(f"{whom}.*{taken}", first):
                break
            assert time.monotonic() < deadline, said
        assert "UNITS TAKEN AND NOT POSTED" in rest
        assert "waits for itself" not in said


@pytest.mark.parametrize("is_prepared", [True, False], ids=["prepared", "unprepared"])
def test_two_mutexes_of_rust_have_two_names(is_prepared: bool, compiler: Compiler) -> None:
    hang = next(one for one in HANGS if one.name == "rust_two_mutexes")
    with hanging(hang, is_prepared, compiler) as pid:
        deadline = time.monotonic() + PATIENCE_S
        wanted = {"charge_account", "read_config"}
        while True:
            done = tool.run("snapshot", "-p", pid, "-d", "1")
            names = [lock["name"] for lock in json.loads(done.stdout)["locks"]]
            found = {one for one in wanted if any(re.search(rf"\b{one}\b", n) for n in names)}
            if found == wanted:
                break
            assert time.monotonic() < deadline, names
