"""The words about who took the units of a semaphore."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.analysis.semaphore_ownership import taken_units
from locktop.collector.format import unit_takers
from locktop.collector.format.snapshot_index import SnapshotIndex
from locktop.collector.model import Kind, LockUse, Snapshot, Thread, ThreadState

SLOTS = 7


def taker(tid: int, name: str, acquired: int, posted: int, **fields: Any) -> Thread:
    use = LockUse(lock=SLOTS, acquisitions=acquired, signals=posted)
    return replace(records.thread(tid, name, ThreadState.RUNNING), uses=(use,), **fields)


def waiter(duration_s: float = 5.0) -> Thread:
    wait = records.wait(SLOTS, Kind.SEM, duration_s)
    return records.thread(1, "waiter", ThreadState.WAITING, waiting_for=wait)


def snapshot(*threads: Thread, **fields: Any) -> Snapshot:
    slots = replace(
        records.lock(SLOTS, "g_slots", Kind.SEM, waiters=(1,)),
        **{
            "used_as_lock": True, "first_value": 3, "life_acquisitions": 43, "life_signals": 40,
            **fields,
        },
    )  # fmt: skip
    return records.snapshot((waiter(), *threads), (slots,))


def test_living_threads_come_first_and_those_that_ended_are_marked() -> None:
    seen = snapshot(taker(2, "leaver", 9, 8, alive=False), taker(3, "keeper", 11, 10))
    words = unit_takers.phrase(SnapshotIndex(seen), SLOTS)
    assert words == (
        "all 3 units taken, not posted: keeper, leaver (ended), 1 by a thread that ended"
    )
    assert list(unit_takers.lines(seen)) == [
        "UNITS TAKEN AND NOT POSTED", f"  sem g_slots: {words}",
    ]  # fmt: skip


def test_a_thread_with_several_units_and_many_threads() -> None:
    seen = snapshot(taker(2, "a", 12, 10), taker(3, "b", 11, 10))
    assert unit_takers.phrase(SnapshotIndex(seen), SLOTS).endswith(": a x2, b")
    many = [taker(2 + number, f"t{number}", 11, 10) for number in range(5)]
    seen = snapshot(*many, first_value=5, life_acquisitions=45)
    assert unit_takers.phrase(SnapshotIndex(seen), SLOTS).endswith(": t0, t1, t2, 2 more threads")


@pytest.mark.parametrize(
    "fields",
    [
        {"used_as_lock": False},
        {"foreign_releases": True},
        {"life_acquisitions": 42},
        {"life_signals": 15, "life_acquisitions": 18},
        {"first_value": None},
        {"holders": (2,)},
    ],
    ids=str,
)
def test_what_is_not_proved_is_not_said(fields: dict[str, Any]) -> None:
    seen = snapshot(taker(2, "a", 12, 10), taker(3, "b", 11, 10), **fields)
    assert taken_units(seen) == {}
    assert not list(unit_takers.lines(seen))


def test_a_thread_that_posted_more_than_it_took_makes_it_a_signal() -> None:
    assert taken_units(snapshot(taker(2, "a", 14, 10), taker(3, "b", 10, 11))) == {}


def test_a_thread_whose_counts_are_not_known_may_have_taken_any() -> None:
    seen = snapshot(taker(2, "a", 12, 10), replace(taker(3, "b", 11, 10), uses=None))
    assert taken_units(seen) == {}


def test_while_units_come_and_go_the_counts_say_nothing() -> None:
    seen = snapshot(taker(2, "a", 12, 10), taker(3, "b", 11, 10))
    brief = replace(seen, threads=(waiter(0.5), *seen.threads[1:]))
    assert taken_units(seen)
    assert taken_units(brief) == {}
