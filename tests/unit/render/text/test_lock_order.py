"""Potential deadlocks as text: their limits, their names, and what may be missing."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.model import (
    Confidence,
    Deadlock,
    DeadlockEdge,
    OrderCycle,
    OrderEdge,
    OrderWay,
    Snapshot,
)
from locktop.collector.render.text import lock_order
from locktop.collector.render.words import lock_order as words

ORDERS = scenarios.orders(unproven=0)
FIRST, SECOND = ORDERS.lock_order
LOW = replace(SECOND, confidence=Confidence.LOW)
HEAD = "potential deadlock: store 4711 took in different orders: "


@pytest.mark.parametrize(
    ("cycles", "line"),
    [
        ((FIRST,), f"{HEAD}mutex g_cache_lock, rwlock g_table_lock (high confidence)"),
        ((FIRST, LOW), f"{HEAD}mutex g_cache_lock, rwlock g_table_lock (high confidence)"),
        (
            (FIRST, SECOND, SECOND),
            f"{HEAD}mutex g_cache_lock, rwlock g_table_lock (high confidence), and 2 more",
        ),
        (
            (replace(SECOND, classes=("conn::mu", "pool::mu")),),
            f"{HEAD}conn::mu, pool::mu (medium confidence)",
        ),
    ],
)
def test_the_headline_has_the_likely_ones(cycles: tuple[OrderCycle, ...], line: str) -> None:
    assert lock_order.headline(replace(ORDERS, lock_order=cycles)) == line


def lines(*cycles: OrderCycle, frames: int = 0, **more: object) -> list[str]:
    stack = tuple(replace(records.frame("f", "f.c", 1 + n), inlined=n == 0) for n in range(frames))
    return list(lock_order.lines(replace(ORDERS, lock_order=cycles, stacks={1: stack}, **more)))


ITSELF = OrderCycle((9,), (OrderEdge(9, 9, 77, 1),))


@pytest.mark.parametrize(("count", "end"), [(10, None), (11, "  and 1 more")])
def test_ten_of_them_are_listed(count: int, end: str | None) -> None:
    found = lines(*[ITSELF] * count)
    assert found.count("  1 lock taken in different orders, high confidence") == 10
    assert found[-1] == (end or "    thread 77 wanted lock 9 while it held lock 9")


@pytest.mark.parametrize(
    ("frames", "end"),
    [(1, "        f at /src/store/f.c:1 (inlined)"),
     (30, "        f at /src/store/f.c:30"),
     (31, "        and 1 frame more")],
)  # fmt: skip
def test_thirty_frames_of_a_stack_are_listed(frames: int, end: str) -> None:
    assert lines(ITSELF, frames=frames)[-1] == end


@pytest.mark.parametrize(
    ("count", "left_out", "end"),
    [(1, False, "1 other way"), (2, False, "2 other ways"), (1, True, "1 or more other ways")],
)
def test_other_ways_are_counted(count: int, left_out: bool, end: str) -> None:
    way = OrderWay(ITSELF.edges)
    found = lines(replace(ITSELF, ways=(way,) * count, ways_left_out=left_out))
    assert found[-1] == f"    the same in {end}, by other stacks"


MISSING = [
    "some lock orders found no room: potential deadlocks may be missing",
    "the search ended at its limit: further potential deadlocks may be missing",
]


def test_what_is_left_out_has_its_reason() -> None:
    assert lines() == []
    left_out = lines(
        lock_order_suppressed=2, lock_order_unproven=1, lock_orders_left_out=True,
        lock_order_search_cut=True,
    )  # fmt: skip
    assert left_out == [
        "POTENTIAL DEADLOCKS, which may never happen",
        "  2 left out by a suppression file",
        "  1 left out, because their memory may have had other locks in between (a run with"
        " LOCKTOP_ORDER=mark decides)",
        *(f"  {sentence}" for sentence in MISSING),
    ]


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        ({}, []),
        ({"source": "proc"}, ["lock orders are not known without the library"]),
        ({"level": "counting"}, ["lock orders are not recorded at level counting"]),
        ({"level": "dormant"}, ["lock orders are not recorded at level dormant"]),
        ({"lock_orders_left_out": True, "lock_order_search_cut": True}, MISSING),
    ],
)
def test_why_there_may_be_a_potential_deadlock_nevertheless(
    changes: dict[str, object], sentences: list[str]
) -> None:
    assert list(words.unknown(replace(scenarios.normal(), **changes))) == sentences


@pytest.mark.parametrize(("certain", "left"), [(True, [SECOND]), (False, [FIRST, SECOND])])
def test_an_order_that_is_a_certain_deadlock_now_is_no_potential_one(
    certain: bool, left: list[OrderCycle]
) -> None:
    cycle = (DeadlockEdge(11, 1, 12, 0, 0), DeadlockEdge(12, 2, 11, 0, 0))
    snapshot: Snapshot = replace(ORDERS, deadlocks=(Deadlock(certain, 1.0, cycle),))
    assert words.not_there(snapshot) == left


def test_a_certain_deadlock_is_not_listed_as_a_potential_one_too() -> None:
    edges = tuple(DeadlockEdge(edge.tid, edge.to, 1, 1, 0) for edge in FIRST.edges)
    assert "wanted" in "".join(lines(FIRST, deadlocks=(Deadlock(False, 1.0, edges),)))
    assert lines(FIRST, deadlocks=(Deadlock(True, 1.0, edges),)) == []
