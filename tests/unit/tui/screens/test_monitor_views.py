"""Number keys and the views of the monitor, and the walk from a lock to its holder."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from msgspec.structs import replace
from support.driven import opened, row_under_cursor
from unit.builders import records, scenarios

from locktop.collector.model import Held, Kind, ThreadState
from locktop.collector.recording.history import History
from locktop.tui.monitor_views import VIEWS, MonitorView

SIZES = [(80, 24), (120, 40), (200, 60), (40, 12)]


def walk_over_all_pairs() -> list[MonitorView]:
    """Return views in an order in which each view follows each view once."""
    walk = []
    for number, view in enumerate(VIEWS, 1):
        walk.append(view)
        for other in VIEWS[number:]:
            walk += [view, other]
    return [*walk, VIEWS[0]]


def test_the_walk_has_all_pairs_once() -> None:
    assert sorted(
        VIEWS.index(a) * 100 + VIEWS.index(b) for a, b in pairwise(walk_over_all_pairs())
    ) == [a * 100 + b for a, b in product(range(len(VIEWS)), repeat=2)]


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_each_digit_opens_its_view_from_other_views(size: tuple[int, int]) -> None:
    """Each size has a part of all pairs of views."""
    walk = walk_over_all_pairs()
    part = -(-len(walk) // len(SIZES))
    begin = SIZES.index(size) * part
    history = History()
    for second in range(3):
        history.add(scenarios.calls(second), (1_700_000_000 + second) * 10**9)
    async with opened(scenarios.calls(3), size=size, moments=history) as screen:
        await screen.keys(walk[begin].digit)
        for before, view in pairwise(walk[begin : begin + part + 1]):
            await screen.keys(view.digit)
            if view.name != "inside":  # which needs a chosen lock
                assert f"[{view.digit} " in screen.first, (before.name, view.name, screen.text)
        await screen.keys("2")
        assert screen.locks.has_focus


async def test_the_overview_names_the_worst_lock_and_the_longest_chain() -> None:
    async with opened(size=(80, 40)) as screen:
        await screen.keys("1")
        assert "Worst lock g_table_lock  rwlock" in screen.text
        assert "held by   journal for 1.31s at journal_write" in screen.text
        assert "now in fsync" in screen.text
        assert "Longest chain of 2 threads" in screen.text
        assert "reader waits for g_table_lock" in screen.text
        assert "→ journal" in screen.text
        await screen.keys("escape")
        assert "[2 Locks]" in screen.first


async def test_the_overview_says_what_a_holder_does_whose_call_is_not_known() -> None:
    made = scenarios.normal()
    locks = tuple(replace(lock, holder_activity=None) for lock in made.locks)
    async with opened(replace(made, locks=locks), size=(80, 40)) as screen:
        await screen.keys("1")
        assert "          now other" in screen.text


async def test_the_details_after_an_empty_list_are_of_a_lock() -> None:
    async with opened(scenarios.normal()) as screen:
        await screen.keys("5", "7")
        assert "Details of a lock" in screen.text


async def test_the_overview_names_a_deadlock() -> None:
    async with opened(scenarios.deadlock(), size=(80, 40)) as screen:
        await screen.keys("1")
        assert "1 certain deadlock (key 5)" in screen.text
        assert screen.status.endswith("DEADLOCK")


async def test_the_list_of_deadlocks_has_a_row_for_each() -> None:
    async with opened(scenarios.deadlock()) as screen:
        await screen.keys("5")
        assert "certain" in row_under_cursor(screen.app.screen.query_one("#deadlocks"))  # type: ignore[arg-type]
        assert "Details of the deadlock" in screen.text
        await screen.keys("enter")
        assert screen.details.has_focus


async def test_potential_deadlocks_have_rows_and_details_of_their_own() -> None:
    async with opened(scenarios.orders()) as screen:
        await screen.keys("5", "down")
        assert "potential" in screen.text
        assert "Details of a potential deadlock" in screen.text


async def test_the_list_of_deadlocks_says_that_there_is_none() -> None:
    async with opened() as screen:
        await screen.keys("5")
        assert "There is no deadlock." in screen.text


async def test_enter_walks_from_the_lock_to_its_holder_and_to_the_lock_it_wants() -> None:
    waits = ThreadState.WAITING
    threads = (
        records.thread(1, "client", waits, waiting_for=records.wait(1, Kind.MUTEX, 2.0, 2)),
        records.thread(
            2,
            "pool",
            waits,
            holds=(Held(1, 0, 2.5),),
            waiting_for=records.wait(2, Kind.MUTEX, 2.2, 3),
        ),
        records.thread(3, "index", ThreadState.RUNNING, holds=(Held(2, 0, 3.0),)),
    )
    locks = (
        records.lock(1, "connection", holders=(2,), waiters=(1,)),
        records.lock(2, "index_mu", holders=(3,), waiters=(2,)),
    )
    snapshot = replace(scenarios.normal(), threads=threads, locks=locks)
    async with opened(snapshot, size=(100, 40)) as screen:
        await screen.keys("2", "slash", *"connection", "enter", "enter")
        assert "connection  mutex" in screen.text
        await screen.keys("enter")
        assert "pool  thread 2" in screen.text
        assert "1 step on; Esc: back" in screen.text
        await screen.keys("enter")
        assert "index_mu  mutex" in screen.text
        await screen.keys("enter")
        assert "index  thread 3" in screen.text
        await screen.keys("enter")
        await screen.says("index waits for no lock: the chain ends here.")
        await screen.show(replace(snapshot, duration_s=9.0))
        assert "index  thread 3" in screen.text, "a new snapshot leaves the walk as it is"
        await screen.keys("escape", "escape", "escape")
        assert "connection  mutex" in screen.text
        await screen.keys("escape")
        assert screen.locks.has_focus


async def test_z_gives_the_details_the_whole_screen_and_takes_it_back() -> None:
    async with opened() as screen:
        await screen.keys("z")
        assert "Locks by" not in screen.text
        assert "[7 Details]" in screen.first
        await screen.keys("z")
        assert "Locks by" in screen.text


async def test_tab_stays_within_the_view() -> None:
    async with opened(scenarios.deadlock()) as screen:
        await screen.keys("4", "tab")
        assert screen.details.has_focus
        await screen.keys("tab")
        assert "[4 Blocking]" in screen.first
        assert "Threads by" not in screen.text


async def test_the_filter_opens_from_the_overview() -> None:
    async with opened() as screen:
        await screen.keys("1", "slash", *"table", "enter")
        assert "Locks by" in screen.text
        assert "g_cache_lock" not in "".join(screen.lines[3:])


async def test_f4_stops_the_reading_of_names_and_goes_on() -> None:
    async with opened(replace(scenarios.normal(), names_left=214)) as screen:
        assert "names: 214 left" in screen.status
        await screen.keys("f4")
        await screen.says("No more names are read")
        assert not screen.feed.reads_names
        await screen.keys("f4")
        await screen.says("Names are read again.")
        assert screen.feed.reads_names
