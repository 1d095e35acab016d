"""Planted deadlocks in cores, and healthy programs in cores, each beside the live process.

The programs are those of the table of verdicts. The kernel does not tell a core who reads a lock
and who took a semaphore: such a deadlock is not known without the library either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from integration.deadlock.test_verdict_table import (
    CERTAIN,
    POSSIBLE,
    SILENT,
    Cycle,
    DeadlockCase,
    Program,
    of,
)
from support.cores import core_of
from support.targets import Compiler, Target
from support.unprepared import scan_until

from locktop.collector.model import Snapshot
from locktop.collector.sources.core.source import CoreSource
from locktop.tui.commands.check import exit_status

#: gdb attaches to no process whose first thread has ended.
_ANY_WAITER = "a barrier for more than there are"
_NO_GCORE = "two mutexes, when the main thread has ended"


def _ring(length: int, objects: str = "") -> DeadlockCase:
    names = "abcdefghijkl"[:length]
    pairs = list(zip(names, names[1:] + names[0], strict=True))
    scripts = [f"lock {x}, meet 1, lock {y}" for x, y in pairs]
    open_end = [*scripts[:-1], "lock " + pairs[-1][0] + ", meet 1, stay"]
    cycle: Cycle = {(n + 1, "held", (n + 1) % length + 1) for n in range(length)}
    return DeadlockCase(of(*scripts, objects=objects), of(*open_end, objects=objects), cycle)


def _planted() -> Iterator[tuple[str, DeadlockCase]]:
    for name, case in CERTAIN.items():
        scripts = ", ".join(case.program.scripts)
        if name != _NO_GCORE and not re.search(r"\b(get|read) ", scripts):
            yield name, case
    for length in range(2, 12):
        yield f"a ring of {length} mutexes", _ring(length)
    for sort in ("recursive", "checked", "robust"):
        objects = " ".join(f"{name}={sort}" for name in "abc")
        yield f"a ring of {sort} mutexes", _ring(3, objects)


PLANTED = dict(_planted())
#: Programs without a deadlock, or with one that only the library can prove.
HEALTHY: dict[str, Program] = {
    **{f"near miss of {name}": case.near_miss for name, case in PLANTED.items()},
    **{f"near miss of {name}": case.near_miss for name, case in POSSIBLE.items()},
    **SILENT,
}


def _core_scan(compiler: Compiler, program: Program, directory: Path) -> tuple[list[int], Snapshot]:
    """Return the threads of a program, and the scan of its core when all its waiters wait."""
    command: list[str | Path] = [compiler.program("scripted_threads"), *program.arguments]
    with Target(command) as target:
        tids = [int(tid) for tid in target.truth()["tids"]]
        waiters = {tids[number] for number in program.waiters()}
        scan_until(
            target.pid,
            lambda seen: waiters <= {thread.tid for thread in seen.threads if thread.waiting_for},
        )
        core = core_of(target.pid, directory)
    with closing(CoreSource(str(core))) as source:
        snapshot = source.scan(resolve=True)
    core.unlink()
    return tids, snapshot


def test_there_are_enough_cases() -> None:
    assert len(PLANTED) >= 30
    assert len(HEALTHY) >= 30


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_deadlock_is_certain(name: str, compiler: Compiler, tmp_path: Path) -> None:
    case = PLANTED[name]
    tids, snapshot = _core_scan(compiler, case.program, tmp_path)
    number = {tid: number for number, tid in enumerate(tids)} | {0: -1}
    cycles = [
        {(number[edge.tid], str(edge.reason), number[edge.held_by]) for edge in deadlock.cycle}
        for deadlock in snapshot.deadlocks
        if deadlock.certain
    ]
    if name == _ANY_WAITER:
        assert cycles in ([{(0, "absent", -1)}], [{(1, "absent", -1)}])
    else:
        assert cycles == [case.cycle]
    assert exit_status(snapshot) == 1


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_program_is_silent(name: str, compiler: Compiler, tmp_path: Path) -> None:
    _, snapshot = _core_scan(compiler, HEALTHY[name], tmp_path)
    assert snapshot.deadlocks == ()
    assert snapshot.hang is None
    assert exit_status(snapshot) == 0
