"""Interpreters of CPython without the GIL: the locks that only these have."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from support import tool
from support.pythons import all_pythons, is_free_threaded
from support.targets import PATIENCE_S, Target, source_of

from locktop.collector.model import Snapshot
from locktop.collector.model.locks import PAUSE
from locktop.collector.sources.attach import attach
from locktop.collector.sources.launch import preload_environment

_SCANS = 10
both_ways = pytest.mark.parametrize("prepared", [True, False], ids=["prepared", "unprepared"])


@pytest.fixture(params=[path for path in all_pythons() if is_free_threaded(path)] or [""])
def python(request: pytest.FixtureRequest) -> str:
    """Return the path of an interpreter without the GIL."""
    if not request.param:
        pytest.skip("no free-threaded Python on this machine, such as python3.13t")
    return str(request.param)


def awaited(snapshot: Snapshot, tid: int) -> str:
    """Return the name of the lock that a thread waits for; "" if it waits for none."""
    locks = {lock.id: lock.name for lock in snapshot.locks}
    (thread,) = [thread for thread in snapshot.threads if thread.tid == tid]
    return locks[thread.waiting_for.lock] if thread.waiting_for is not None else ""


@both_ways
def test_the_lock_inside_an_object_is_no_lock_of_the_program(python: str, prepared: bool) -> None:
    command = [python, str(source_of("python_object_lock"))]
    with Target(command, preload_environment(None) if prepared else None) as target:
        target.line()
        waiter = int(target.line())
        deadline = time.monotonic() + PATIENCE_S
        name = ""
        with closing(attach(target.pid)) as source:
            while not name.startswith("Lock of an object in appends (python_object_lock.py:"):
                assert time.monotonic() < deadline, name
                name = awaited(source.scan(resolve=True), waiter)
                assert not name.startswith(("Lock in ", "GIL")), name


@both_ways
def test_a_pause_of_all_threads_is_no_lock_of_the_program(python: str, prepared: bool) -> None:
    command = [python, str(source_of("python_paused"))]
    with Target(command, preload_environment(None) if prepared else None) as target:
        waiter = int(target.line())
        deadline = time.monotonic() + PATIENCE_S
        name = ""
        with closing(attach(target.pid)) as source:
            while name != PAUSE:
                assert time.monotonic() < deadline, name
                name = awaited(source.scan(resolve=True), waiter)
                assert not name.startswith(("Lock ", "GIL")), name


def test_a_healthy_program_has_no_deadlock(python: str) -> None:
    with Target([python, str(source_of("python_healthy"))]) as target:
        target.expect("ready")
        with closing(attach(target.pid)) as source:
            for _ in range(_SCANS):
                assert source.scan(resolve=True).deadlocks == ()


@both_ways
def test_nobody_waits_for_a_gil(python: str, prepared: bool) -> None:
    command = [python, str(source_of("python_threads_burn"))]
    with Target(command, preload_environment(None) if prepared else None) as target:
        target.expect("ready")
        for arguments in (("check",), ("stacks",), ("snapshot", "--format", "text")):
            done = tool.run(*arguments, "-p", target.pid)
            assert "GIL" not in done.stdout, done.stdout
