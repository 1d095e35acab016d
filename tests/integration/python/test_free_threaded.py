"""Interpreters of CPython without the GIL: the locks that only these have."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from support import tool
from support.pythons import all_pythons, is_free_threaded
from support.targets import PATIENCE_S, Target, source_of

from locktop.collector.sources.attach import attach
from locktop.collector.sources.launch import preload_environment

NAME = "Lock of an object in appends (python_object_lock.py:"
both_ways = pytest.mark.parametrize("prepared", [True, False], ids=["prepared", "unprepared"])


@pytest.fixture(params=[path for path in all_pythons() if is_free_threaded(path)] or [""])
def python(request: pytest.FixtureRequest) -> str:
    """Return the path of an interpreter without the GIL."""
    if not request.param:
        pytest.skip("no free-threaded Python on this machine, such as python3.13t")
    return str(request.param)


@both_ways
def test_the_lock_inside_an_object_is_no_lock_of_the_program(python: str, prepared: bool) -> None:
    command = [python, str(source_of("python_object_lock"))]
    with Target(command, preload_environment(None) if prepared else None) as target:
        target.line()
        waiter = int(target.line())
        deadline = time.monotonic() + PATIENCE_S
        names: list[str] = []
        with closing(attach(target.pid)) as source:
            while not names or not names[0].startswith(NAME):
                assert time.monotonic() < deadline, names
                snapshot = source.scan(resolve=True)
                waits = [t.waiting_for for t in snapshot.threads if t.tid == waiter]
                wanted = {wait.lock for wait in waits if wait is not None}
                names = [lock.name for lock in snapshot.locks if lock.id in wanted]
                assert not any(name.startswith("Lock in ") for name in names), names


@both_ways
def test_nobody_waits_for_a_gil(python: str, prepared: bool) -> None:
    command = [python, str(source_of("python_threads_burn"))]
    with Target(command, preload_environment(None) if prepared else None) as target:
        target.expect("ready")
        for arguments in (("check",), ("stacks",), ("snapshot", "--format", "text")):
            done = tool.run(*arguments, "-p", target.pid)
            assert "GIL" not in done.stdout, done.stdout
