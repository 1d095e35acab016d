"""Possible deadlocks between a join of Python and a lock."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.analysis import joins_under_locks
from locktop.collector.analysis.lock_ordering_advice import OrderingAdvice
from locktop.collector.model import Frame, Kind, Remedy, Snapshot, ThreadState, Wait


def python_frame(function: str, file: str) -> Frame:
    return replace(records.frame(function, file, 10), file=file, module="python")


JOIN = python_frame("join", "threading.py")
STOP = python_frame("stop", "app.py")


def snapshot(joins: Wait, wants: Wait, frames: tuple[Frame, ...] = (JOIN, STOP)) -> Snapshot:
    threads = (
        records.thread(1, "main", ThreadState.IDLE, waiting_for=joins),
        records.thread(2, "worker", ThreadState.WAITING, waiting_for=wants),
    )
    locks = (records.lock(1, "lock", Kind.SEM), records.lock(2, "event", Kind.SEM))
    return records.snapshot(threads, locks, stacks={1: frames, 2: (STOP,)})


JOINS = records.wait(2, Kind.SEM, 12.0, stack=1)
WANTS = replace(records.wait(1, Kind.SEM, 11.0, 1, stack=2), idle=False)


def test_a_long_wait_for_a_lock_of_a_joining_thread_is_a_possible_deadlock() -> None:
    seen = snapshot(JOINS, WANTS)
    (found,) = joins_under_locks.find(seen)
    assert not found.certain
    assert [(edge.tid, edge.held_by) for edge in found.cycle] == [(2, 1), (1, 2)]
    assert found.since_s == 11.0
    avoidance = OrderingAdvice(replace(seen, deadlocks=(found,))).avoidance(found)
    assert avoidance.remedy is Remedy.RELEASE
    assert avoidance.change is not None
    assert (avoidance.change.tid, avoidance.change.has) == (1, 1)


@pytest.mark.parametrize(
    "seen",
    [
        snapshot(JOINS, replace(WANTS, duration_s=9.0)),
        snapshot(replace(JOINS, timed=True), WANTS),
        snapshot(JOINS, replace(WANTS, timed=True)),
        snapshot(JOINS, replace(WANTS, holders=())),
        snapshot(JOINS, WANTS, (python_frame("wait", "threading.py"), JOIN)),
        snapshot(JOINS, WANTS, (python_frame("join", "app.py"),)),
    ],
)
def test_other_waits_are_none(seen: Snapshot) -> None:
    assert joins_under_locks.find(seen) == ()
