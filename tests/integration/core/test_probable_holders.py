"""Locks that name no holder in cores: the probable holders are those of the live process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from probable.programs import LIBRARIES, program
from support import tool
from support.cores import core_of
from support.eventually import until
from support.targets import Compiler, Target

_CORES = 3


@pytest.mark.parametrize("name", ["std", "absl", "futex"])
def test_a_deadlock_of_probable_holders_is_possible(
    name: str, compiler: Compiler, tmp_path: Path
) -> None:
    (library,) = (library for library in LIBRARIES if library.name == name)
    with Target([*program(library, "-O2", compiler), "deadlock_of_two"]) as target:
        waiters = {int(tid) for tid in target.truth()["waiters"]}
        until(lambda: tool.run("check", "-p", target.pid, "-q").returncode == 3, "status 3")
        core = str(core_of(target.pid, tmp_path))
    done = tool.run("check", core, "--format", "json")
    assert done.returncode == 3, done.stderr
    (deadlock,) = json.loads(done.stdout)["deadlocks"]
    assert {edge["tid"] for edge in deadlock["cycle"]} == waiters
    assert not deadlock["certain"]
    why = tool.run("why", core)
    assert why.returncode == 3, why.stderr
    assert why.stdout.startswith("possible deadlock: ")
    assert "probably has it" in " ".join(why.stdout.split())


@pytest.mark.parametrize("name", ["std", "futex"])
def test_healthy_holders_in_a_core_are_no_deadlock(
    name: str, compiler: Compiler, tmp_path: Path
) -> None:
    (library,) = (library for library in LIBRARIES if library.name == name)
    with Target(program(library, "-O2", compiler, "healthy")) as target:
        target.expect("ready")
        for _ in range(_CORES):
            core = core_of(target.pid, tmp_path)
            assert tool.run("check", str(core)).returncode == 0
            core.unlink()
