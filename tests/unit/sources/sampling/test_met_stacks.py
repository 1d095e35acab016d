"""The stacks of the waits that scans met."""

from __future__ import annotations

from unit.builders import records

from locktop.collector.model import Draft, Kind, ThreadState
from locktop.collector.sources.sampling.met_stacks import MetStacks


def seen(lock: int) -> Draft:
    """Return a scan in which the same wait is for this lock."""
    wait = records.wait(lock, Kind.MUTEX, 1.0, stack=7)
    thread = records.thread(10, "worker", ThreadState.WAITING, waiting_for=wait)
    locks = tuple(records.lock(id_, f"g_{id_}", wait_s=1.0) for id_ in (1, 2))
    return records.snapshot((thread,), locks).draft()


def test_a_wait_may_turn_out_to_be_for_another_lock() -> None:
    met = MetStacks()
    for lock in (1, 2):
        draft = seen(lock)
        met.annotate(draft, lambda _: (records.frame("work", "work.c", 1),))
    assert [len(lock.wait_stacks) for lock in draft.locks] == [1, 1]
