"""Deadlocks between a mutex and the initialiser of a static variable."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from support.targets import PATIENCE_S, StartTarget

from locktop.collector.model import BlockReason, Snapshot
from locktop.collector.render.words import verdict
from locktop.collector.sources.attach import attach

TARGET = "static_initialiser_and_mutex"
#: Seconds after which a wait counts for a possible deadlock, and more.
LONG_S = 1.2


@pytest.fixture(params=["start_target", "start_unprepared"])
def start(request: pytest.FixtureRequest) -> StartTarget:
    """Starts a target, with the library and without."""
    found: StartTarget = request.getfixturevalue(request.param)
    return found


def settled(start: StartTarget, how: str) -> Snapshot:
    """Scan until both threads have waited long, and their functions are known."""
    target = start(TARGET, how)
    target.expect("ready")
    deadline = time.monotonic() + PATIENCE_S
    with closing(attach(target.pid)) as source:
        while not all_wait(seen := source.scan(resolve=True)):
            assert time.monotonic() < deadline, seen
            time.sleep(0.05)  # leaves the CPU to the target
    return seen


def all_wait(seen: Snapshot) -> bool:
    waits = [one.waiting_for for one in seen.threads if one.name in ("initialiser", "holder")]
    return len(waits) == 2 and all(wait and wait.duration_s > LONG_S for wait in waits)


def names(seen: Snapshot) -> list[set[str]]:
    """Return the names of the threads of each cycle."""
    by_tid = {thread.tid: thread.name for thread in seen.threads}
    return [{by_tid[edge.tid] for edge in one.cycle} for one in seen.deadlocks]


@pytest.mark.parametrize("how", ["guard", "two_guards"])
def test_a_guard_closes_a_certain_deadlock(start: StartTarget, how: str) -> None:
    seen = settled(start, how)
    assert names(seen) == [{"initialiser", "holder"}]
    (found,) = seen.deadlocks
    assert BlockReason.RUNS in {edge.reason for edge in found.cycle}
    assert verdict.is_deadlocked(seen)


def test_an_initialiser_that_wants_its_own_variable_is_deadlocked(start: StartTarget) -> None:
    seen = settled(start, "twice")
    assert names(seen) == [{"initialiser"}]
    assert verdict.is_deadlocked(seen)


def test_copies_of_a_function_close_a_possible_deadlock(start: StartTarget) -> None:
    seen = settled(start, "inlined")
    assert names(seen) == [{"initialiser", "holder"}]
    (found,) = seen.deadlocks
    assert "may be in another part of the function" in found.doubt
    assert {edge.reason for edge in found.cycle} == {BlockReason.RUNS, BlockReason.HELD}
    assert verdict.is_doubtful(seen)
    assert not verdict.is_deadlocked(seen)


def test_a_once_flag_closes_a_certain_deadlock(start: StartTarget) -> None:
    seen = settled(start, "call_once")
    assert names(seen) == [{"initialiser", "holder"}]
    assert verdict.is_deadlocked(seen)


@pytest.mark.parametrize("how", ["other_guard", "other_of_function", "other_part", "jump_before"])
def test_the_initialiser_of_a_third_thread_closes_none(start: StartTarget, how: str) -> None:
    assert names(settled(start, how)) == []
