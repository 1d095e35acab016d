"""Snapshots and drafts, and the stacks and call sites that they refer to."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.model import (
    Event,
    Kind,
    Misuse,
    MisuseKind,
    ThreadState,
    UnobservedWait,
    WaitStack,
)


def test_a_draft_has_the_contents_of_its_snapshot() -> None:
    made = scenarios.deadlock()
    assert made.draft().snapshot() == made


def test_a_change_of_a_draft_leaves_its_snapshot_alone() -> None:
    made = scenarios.deadlock()
    draft = made.draft()
    draft.threads = ()
    assert made.threads
    assert draft.snapshot() == replace(made, threads=())


def test_every_stack_that_is_referred_to_is_named_once() -> None:
    thread = records.thread(1, "w", ThreadState.OTHER)
    made = replace(
        records.snapshot(
            (replace(thread, waiting_for=records.wait(1, Kind.MUTEX, 1.0, stack=1)), thread),
            (records.lock(1, "m", wait_stacks=(WaitStack(2, 1, 1.0),)),),
        ),
        events=(Event(1, 1, Kind.MUTEX, 1.0, 1.0, None, 3, 0, 0x10, timed_out=False),),
        misuses=(Misuse(MisuseKind.TAKEN_AGAIN, 1, 1, 0, 4, 1, 1.0),),
        unobserved_waits=(UnobservedWait(1, stack=5),),
    )
    assert made.stack_ids() == {1, 2, 3, 4, 5}
    assert made.site_ids() == {0x10, 0x401100}


def test_the_locks_of_a_deadlock() -> None:
    made = scenarios.deadlock()
    assert made.deadlocked == {edge.waits_for for edge in made.deadlocks[0].cycle}
    assert scenarios.normal().deadlocked == frozenset()


def test_a_snapshot_is_sampled_if_its_source_is_proc() -> None:
    assert not scenarios.normal().is_sampled
    assert records.sampled(scenarios.normal()).is_sampled
