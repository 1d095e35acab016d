"""Possible deadlocks over locks that name no holder."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.analysis import probable_deadlocks
from locktop.collector.analysis.deadlock_report import reports
from locktop.collector.model import (
    BlockReason,
    HolderEvidence,
    Kind,
    Lock,
    ProbableHolder,
    Remedy,
    Snapshot,
    Thread,
    ThreadState,
)


def waiter(tid: int, lock: int, duration_s: float = 5.0, holder: int = 0) -> Thread:
    kind, holders = (Kind.MUTEX, (holder,)) if holder else (Kind.FUTEX, ())
    wait = replace(records.wait(lock, kind, duration_s, *holders), idle=False)
    return records.thread(tid, f"t{tid}", ThreadState.WAITING, waiting_for=wait)


def nameless(number: int, *holders: int) -> Lock:
    probable = tuple(
        ProbableHolder(tid=tid, evidence=HolderEvidence.GUARD, site=tid) for tid in holders
    )
    return replace(records.lock(number, f"lock {number}", Kind.FUTEX), holders_probable=probable)


def crossed(duration_s: float = 5.0) -> Snapshot:
    """Thread 1 has lock 1 and wants lock 2, thread 2 the other way round; thread 3 waits too."""
    threads = (waiter(1, 2, duration_s), waiter(2, 1), waiter(3, 1))
    return records.snapshot(threads, (nameless(1, 1), nameless(2, 2)))


def test_probable_holders_close_a_cycle() -> None:
    (deadlock,) = probable_deadlocks.find(crossed())
    assert not deadlock.certain
    assert [(edge.tid, edge.waits_for, edge.held_by) for edge in deadlock.cycle] == [
        (1, 2, 2),
        (2, 1, 1),
    ]
    assert {edge.reason for edge in deadlock.cycle} == {BlockReason.PROBABLY_HELD}
    assert deadlock.stuck == (3,)


def test_its_locks_can_have_an_order() -> None:
    snapshot = replace(crossed(), deadlocks=probable_deadlocks.find(crossed()))
    (report,) = reports(snapshot)
    assert report.avoidance.remedy is Remedy.ORDER
    assert set(report.avoidance.order) == {1, 2}


def test_a_known_holder_may_be_a_part_of_the_cycle() -> None:
    snapshot = records.snapshot(
        (waiter(1, 2), waiter(2, 1, holder=1)), (records.lock(1, "g_mutex"), nameless(2, 2))
    )
    (deadlock,) = probable_deadlocks.find(snapshot)
    reasons = [edge.reason for edge in deadlock.cycle]
    assert reasons == [BlockReason.PROBABLY_HELD, BlockReason.HELD]


@pytest.mark.parametrize(
    "snapshot",
    [
        crossed(duration_s=0.5),
        records.snapshot((waiter(1, 2), waiter(2, 1)), (nameless(1, 1, 3), nameless(2, 2))),
        records.snapshot((waiter(1, 2), waiter(2, 1)), (nameless(1), nameless(2, 2))),
        records.snapshot(
            (waiter(1, 2, holder=2), waiter(2, 1, holder=1)), (nameless(1), nameless(2))
        ),
    ],
    ids=["brief", "several", "nobody", "known"],
)
def test_near_misses_close_no_cycle(snapshot: Snapshot) -> None:
    assert probable_deadlocks.find(snapshot) == ()


def test_a_reported_deadlock_is_not_found_again() -> None:
    snapshot = replace(crossed(), deadlocks=probable_deadlocks.find(crossed()))
    assert probable_deadlocks.find(snapshot) == ()
