"""Possible deadlocks through the guard of a static variable."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.analysis import guarded_initialisers
from locktop.collector.model import (
    ActivityState,
    Frame,
    Kind,
    Snapshot,
    ThreadActivity,
    ThreadState,
)

ACQUIRE = records.frame("__cxa_guard_acquire", "", 0)
CONFIG = records.frame("config", "a.cc", 7)
LOAD = records.frame("load", "a.cc", 9)
OTHER = records.frame("theme", "a.cc", 8)


def crossed(duration_s: float = 5.0, third: int = 3) -> Snapshot:
    """Thread 1 wants the mutex of thread 2 in the initialiser that thread 2 waits for."""
    now = ThreadActivity(3, ActivityState.BLOCKED, "pause", "", 5.0, third)
    for_mutex = records.wait(1, Kind.MUTEX, duration_s, 2, stack=1)
    for_guard = replace(records.wait(2, Kind.FUTEX, duration_s, stack=2), idle=False)
    threads = (
        records.thread(1, "initialiser", ThreadState.WAITING, waiting_for=for_mutex),
        records.thread(2, "holder", ThreadState.WAITING, waiting_for=for_guard),
        records.thread(3, "third", ThreadState.OTHER, now=now),
    )
    locks = (records.lock(1, "g_mutex"), records.lock(2, "guard", Kind.FUTEX))
    stacks = {1: (LOAD, CONFIG), 2: (ACQUIRE, CONFIG), 3: (OTHER,), 4: (LOAD, CONFIG)}
    return records.snapshot(threads, locks, stacks=stacks)


class CountingStack(tuple[Frame, ...]):
    """A stack that counts how often its frames are read, one after the other."""

    readings = 0

    def __iter__(self) -> Iterator[Frame]:
        self.readings += 1
        return super().__iter__()


def test_the_only_thread_in_the_function_is_likely_to_run_the_initialiser() -> None:
    (found,) = guarded_initialisers.find(crossed())
    assert not found.certain
    assert [(edge.tid, edge.held_by) for edge in found.cycle] == [(2, 1), (1, 2)]
    assert found.since_s == 5.0


@pytest.mark.parametrize("snapshot", [crossed(duration_s=0.5), crossed(third=4), crossed(third=0)])
def test_a_brief_wait_or_another_thread_that_may_run_it_closes_no_cycle(
    snapshot: Snapshot,
) -> None:
    assert guarded_initialisers.find(snapshot) == ()


def test_another_initialiser_closes_no_cycle() -> None:
    snapshot = crossed()
    other = replace(snapshot, stacks={**snapshot.stacks, 1: (LOAD, OTHER)})
    assert guarded_initialisers.find(other) == ()


def test_a_known_deadlock_is_not_reported_again() -> None:
    snapshot = crossed()
    again = replace(snapshot, deadlocks=guarded_initialisers.find(snapshot))
    assert guarded_initialisers.find(again) == ()


def test_a_crowd_of_waiters_needs_one_search_for_the_thread_that_runs_the_initialiser() -> None:
    seen = crossed()
    guard = seen.threads[1].waiting_for
    assert guard is not None
    searched = CountingStack(seen.stacks[3])
    crowd = [
        records.thread(tid, "waiter", ThreadState.WAITING, waiting_for=replace(guard, seq=tid))
        for tid in range(10, 60)
    ]
    stacks = {**seen.stacks, 3: searched}
    (found,) = guarded_initialisers.find(
        replace(seen, threads=(*seen.threads, *crowd), stacks=stacks)
    )
    assert [(edge.tid, edge.held_by) for edge in found.cycle] == [(2, 1), (1, 2)]
    assert searched.readings == 1
