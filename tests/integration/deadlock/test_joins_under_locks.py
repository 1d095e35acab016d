"""Joins of Python in a thread that holds a lock which another thread wants."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from support.pythons import all_pythons, has_mutexes, version
from support.targets import PATIENCE_S, Target, source_of

from locktop.collector.model import Snapshot
from locktop.collector.render.words import verdict
from locktop.collector.sources.attach import attach
from locktop.collector.sources.launch import preload_environment

#: Seconds: the verdict has no doubt about shorter waits.
LONG_S = verdict.MIN_UNKNOWN_S + 0.5


@pytest.fixture(params=[one for one in all_pythons() if version(one) == (3, 13)] or [""])
def python(request: pytest.FixtureRequest) -> str:
    """An interpreter of 3.13, whose join has an event, and whose locks are semaphores."""
    if not request.param or has_mutexes(request.param):
        pytest.skip("no Python 3.13 with locks of semaphores is here")
    found: str = request.param
    return found


def settled(python: str, what: str, waiting: int) -> Snapshot:
    """Scan until so many threads have waited for long."""
    command = [python, str(source_of("python_join_under_lock")), what]
    with Target(command, preload_environment(None)) as target:
        target.expect("ready")
        deadline = time.monotonic() + PATIENCE_S
        with closing(attach(target.pid)) as source:
            while True:
                seen = source.scan(resolve=True)
                waits = [thread.waiting_for for thread in seen.threads]
                if sum(bool(wait and wait.duration_s > LONG_S) for wait in waits) >= waiting:
                    return seen
                assert time.monotonic() < deadline, seen
                time.sleep(0.2)  # leaves the CPU to the target


def test_a_join_of_a_thread_that_wants_the_lock_is_a_possible_deadlock(python: str) -> None:
    seen = settled(python, "wants", 2)
    (found,) = seen.deadlocks
    assert not found.certain
    assert {edge.tid for edge in found.cycle} == {thread.tid for thread in seen.threads}
    assert verdict.is_doubtful(seen)
    assert not verdict.is_deadlocked(seen)


def test_a_join_of_a_thread_that_reads_is_none(python: str) -> None:
    seen = settled(python, "reads", 1)
    assert seen.deadlocks == ()
    assert not verdict.is_doubtful(seen)
