"""Cycles over Python's GIL, whose waits are no waits of two readings."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.analysis import interpreter_deadlocks
from locktop.collector.model import BlockReason, Kind, Snapshot, ThreadState, Wait

GIL, MUTEX = 1, 2
LOADER, RENDERER, OTHER = 1, 2, 3
WANTS_GIL = records.wait(GIL, Kind.COND, 0.2, RENDERER)
WANTS_MUTEX = records.wait(MUTEX, Kind.MUTEX, 3.0, LOADER)


def snapshot(wants_gil: Wait | None, wants_mutex: Wait | None, others: Wait) -> Snapshot:
    threads = (
        records.thread(LOADER, "loader", ThreadState.WAITING, waiting_for=wants_gil),
        records.thread(RENDERER, "renderer", ThreadState.WAITING, waiting_for=wants_mutex),
        records.thread(OTHER, "other", ThreadState.WAITING, waiting_for=others),
    )
    locks = (records.lock(GIL, "gil", Kind.COND), records.lock(MUTEX, "mutex", Kind.MUTEX))
    return records.snapshot(threads, locks)


def test_a_cycle_is_possible_until_a_probe_confirms_it() -> None:
    (deadlock,) = interpreter_deadlocks.find(
        snapshot(WANTS_GIL, WANTS_MUTEX, WANTS_GIL), {LOADER, OTHER}
    )
    assert not deadlock.certain
    links = {(edge.tid, edge.held_by, edge.reason) for edge in deadlock.cycle}
    assert links == {
        (LOADER, RENDERER, BlockReason.HELD),
        (RENDERER, LOADER, BlockReason.HELD),
    }
    assert deadlock.since_s == WANTS_GIL.duration_s
    assert deadlock.stuck == (OTHER,)


@pytest.mark.parametrize(
    ("seen", "waiters"),
    [
        (snapshot(WANTS_GIL, WANTS_MUTEX, WANTS_GIL), set[int]()),
        (snapshot(WANTS_GIL, None, WANTS_GIL), {LOADER, OTHER}),
        (snapshot(WANTS_GIL, replace(WANTS_MUTEX, timed=True), WANTS_GIL), {LOADER, OTHER}),
        (snapshot(replace(WANTS_GIL, holders=()), WANTS_MUTEX, WANTS_GIL), {LOADER, OTHER}),
        (snapshot(None, WANTS_MUTEX, WANTS_GIL), {OTHER}),
    ],
)
def test_other_waits_are_no_cycle(seen: Snapshot, waiters: set[int]) -> None:
    assert interpreter_deadlocks.find(seen, waiters) == ()
