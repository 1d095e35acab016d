"""The words about who took the units of a semaphore."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.analysis.semaphore_ownership import taken_units
from locktop.collector.model import Kind, LockUse, Snapshot, Thread, ThreadState
from locktop.collector.render.words import unit_takers
from locktop.collector.render.words.snapshot_index import SnapshotIndex

SLOTS = 7


FETCH, STORE, WRAPPER, INTERPRETER = 0x5500, 0x5600, 0x5700, 0x5800
SITES = {
    FETCH: records.frame("fetch_row", "pool.cc", 31),
    STORE: records.frame("store_row", "pool.cc", 45),
    WRAPPER: records.frame("std::counting_semaphore<1>::acquire", "semaphore", 70),
    INTERPRETER: replace(records.frame("acquire_timed", "thread.c", 9), module="libpython3.11.so"),
}
STACKS = {
    5: (SITES[WRAPPER], SITES[FETCH], records.frame("main", "app.cc", 7)),
    6: (SITES[INTERPRETER], records.frame("main", "app.cc", 7)),
}


def taker(
    tid: int,
    name: str,
    acquired: int,
    posted: int,
    call_site: dict[str, Any] | None = None,
    **fields: Any,
) -> Thread:
    use = LockUse(lock=SLOTS, acquisitions=acquired, signals=posted, **call_site or {})
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
    made = records.snapshot((waiter(), *threads), (slots,), sites=SITES, stacks=STACKS)
    found = taken_units(made).get(SLOTS)
    return replace(made, locks=(replace(slots, taken_units=found),))


def test_living_threads_come_first_and_those_that_ended_are_marked() -> None:
    seen = snapshot(taker(2, "leaver", 9, 8, alive=False), taker(3, "keeper", 11, 10))
    words = unit_takers.phrase(SnapshotIndex(seen), SLOTS)
    assert words == (
        "all 3 units taken, not given back: keeper, leaver (ended), 1 by a thread that ended"
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


def phrase(*threads: Thread, width: int = 0, **fields: Any) -> str:
    return unit_takers.phrase(SnapshotIndex(snapshot(*threads, **fields)), SLOTS, width)


def test_one_call_site_of_all_units_comes_before_the_names() -> None:
    threads = taker(2, "a", 12, 10, {"site": FETCH}), taker(3, "b", 11, 10, {"site": FETCH})
    full = "all 3 units taken in fetch_row (pool.cc:31), not given back: a x2, b"
    assert phrase(*threads) == phrase(*threads, width=len(full)) == full
    brief = "all 3 units taken in fetch_row:31, not given back: a x2, b"
    assert phrase(*threads, width=len(full) - 1) == brief


def test_several_call_sites_come_behind_the_names() -> None:
    in_fetch = [taker(tid, f"t{tid}", 11, 10, {"site": FETCH}) for tid in (2, 3)]
    other = taker(4, "other", 11, 10, {"site": STORE, "took_more": True})
    assert phrase(*in_fetch, other) == (
        "all 3 units taken, not given back: t2 and t3 in fetch_row (pool.cc:31),"
        " other first in store_row (pool.cc:45)"
    )


def test_the_call_site_of_threads_that_ended_may_differ() -> None:
    threads = taker(2, "a", 11, 10, {"site": FETCH}), taker(3, "b", 11, 10, {"site": FETCH})
    assert phrase(*threads) == (
        "all 3 units taken, not given back: a and b in fetch_row"
        " (pool.cc:31), 1 by a thread that ended"
    )


def test_a_further_call_site_of_one_thread_is_no_call_site_of_all() -> None:
    first = {"site": FETCH, "took_more": True}
    assert phrase(taker(2, "a", 13, 10, first)) == (
        "all 3 units taken, not given back: a x3 first in fetch_row (pool.cc:31)"
    )


def test_the_first_frame_of_the_program_counts_and_no_other_code() -> None:
    one = {"first_value": 1, "life_acquisitions": 41}
    for call_site, where in (
        ({"stack": 5, "site": WRAPPER}, " in fetch_row (pool.cc:31)"),
        ({"stack": 6, "site": INTERPRETER}, ""),
        ({"site": WRAPPER}, ""),
        ({"site": INTERPRETER}, ""),
        ({"site": 0x9999}, ""),
        ({}, ""),
    ):
        said = phrase(taker(2, "a", 11, 10, call_site), **one)
        assert said == f"the only unit taken{where}, not given back: a", call_site


def test_a_report_has_the_stacks_of_units_that_threads_waited_for() -> None:
    call_sites = {"stack": 5, "site": WRAPPER}, {"stack": 6, "site": INTERPRETER}, {"site": FETCH}
    threads = [taker(2 + i, f"t{i}", 11, 10, call_site) for i, call_site in enumerate(call_sites)]
    assert list(unit_takers.lines(snapshot(*threads)))[2:] == [
        "    t0 took a unit in",
        "      0 std::counting_semaphore<1>::acquire at /src/store/semaphore:70",
        "      1 fetch_row at /src/store/pool.cc:31",
        "      2 main at /src/store/app.cc:7",
    ]
