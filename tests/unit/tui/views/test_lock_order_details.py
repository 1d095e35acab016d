"""Potential deadlocks on the screen: a count in the first line, details behind a key."""

from __future__ import annotations

import queue

import pytest
from msgspec.structs import replace
from support.driven import opened
from unit.builders import scenarios

from locktop.collector.config import suppressions
from locktop.collector.model import Frame, OrderCycle, OrderEdge, OrderWay, Snapshot
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.sources.base import Source
from locktop.tui.feed import PollerFeed
from locktop.tui.views.lock_order_details import lock_order_details
from locktop.tui.views.status import notes
from locktop.tui.views.styled_line import line_text

ALERTING = {"alert", "stuck", "waiting"}


def details(snapshot: Snapshot) -> str:
    return "\n".join(line_text(line) for line in lock_order_details(SnapshotIndex(snapshot)))


def test_each_step_has_thread_locks_locations_and_confidence() -> None:
    text = details(scenarios.orders())
    for said in (
        "2 locks taken in different orders, high confidence",
        "worker-0 (4712)",
        "mutex g_cache_lock",
        "taken in cache_put cache.c:88",
        "rwlock g_table_lock",
        "serve_get                    serve.c:130",
        "thread    4999",  # this thread has ended: its name is not known
        "medium confidence: a third thread has to want to write at that moment",
        "mutex stats_mutex (to read)",
        "no stack is known",
        "3 left out, because their memory may have had other locks in between",
        "LOCKTOP_ORDER=mark",
    ):
        assert said in text


def test_a_potential_deadlock_has_no_alert_colour() -> None:
    lines = list(lock_order_details(SnapshotIndex(scenarios.orders(scenarios.deadlock()))))
    assert not {style for line in lines for _, style in line} & ALERTING


def test_a_cycle_of_classes_names_them_and_many_cycles_are_cut() -> None:
    cycle = OrderCycle((1, 2), (OrderEdge(1, 2, 4712, 1),), classes=("fork[]", "plate[]"))
    text = details(replace(scenarios.normal(), lock_order=(cycle,) * 500))
    assert "classes   fork[], plate[]" in text
    assert "and 480 more" in text
    assert text.count("\n") < 300


def test_other_ways_and_missing_orders_are_details() -> None:
    edges = (OrderEdge(1, 2, 4712, 1),)
    cycle = OrderCycle((1, 2), edges, ways=(OrderWay(edges), OrderWay(edges)))
    text = details(replace(scenarios.normal(), lock_order=(cycle,), lock_orders_left_out=True))
    assert "the same in 2 other ways, by other stacks" in text
    assert "some lock orders found no room" in text
    more = replace(cycle, ways_left_out=True)
    assert "in 2 or more other ways" in details(replace(scenarios.normal(), lock_order=(more,)))
    cut = replace(scenarios.normal(), lock_order_search_cut=True)
    assert "the search ended at its limit" in details(cut)


def test_hostile_names_of_locks_are_sanitized() -> None:
    bad = Frame(1, "f\x1b[2Jg", "a\nb.c", 1, "m", 1)
    cycle = OrderCycle((1, 2), (OrderEdge(1, 2, 4712, 77, 0x77),), classes=("\x1b]0;x\x07",))
    text = details(
        replace(scenarios.hostile(), lock_order=(cycle,), stacks={77: (bad,)}, sites={0x77: bad})
    )
    assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_the_first_line_counts_potential_deadlocks_and_d_shows_them(
    size: tuple[int, int],
) -> None:
    async with opened(scenarios.orders(), size=size) as screen:
        assert "2 potential" in screen.status
        assert "DEADLOCK" not in screen.text
        assert "different orders" not in screen.text
        await screen.keys("d")
        await screen.says("2 locks taken in different orders, high confidence")
        assert screen.details.has_focus
        await screen.keys("G")
        await screen.says("LOCKTOP_ORDER=mark")
        await screen.keys("escape")
        assert "different orders" not in screen.text


async def test_d_shows_a_deadlock_and_then_potential_deadlocks() -> None:
    async with opened(scenarios.orders(scenarios.deadlock())) as screen:
        await screen.keys("d")
        await screen.says("of the deadlock; d: 2 potential")
        await screen.keys("d")
        await screen.says("of potential deadlocks")
        await screen.says("high confidence")
        await screen.keys("d")
        await screen.says("of the deadlock; d: 2 potential")


async def test_the_cycle_of_a_present_deadlock_is_not_repeated() -> None:
    ring = scenarios.deadlock()
    edges = tuple(OrderEdge(10 + i, 10 + (i + 1) % 3, 4730 + i, 4) for i in range(3))
    order = replace(ring, lock_order=(OrderCycle((10, 11, 12), edges),))
    async with opened(order) as screen:
        assert "potential" not in screen.status
        await screen.keys("d", "d")
        await screen.says("of the deadlock")
        doubted = replace(ring.deadlocks[0], certain=False, doubt="who knows")
        await screen.show(replace(order, deadlocks=(doubted,)))
        assert "1 potential" in screen.status


async def test_unproven_cycles_are_mentioned_but_not_counted() -> None:
    async with opened(replace(scenarios.normal(), lock_order_unproven=7)) as screen:
        assert "potential" not in screen.status
        await screen.keys("d")
        await screen.says("7 left out, because their memory may have had other locks")


async def test_potential_deadlocks_leave_the_screen_with_the_snapshot() -> None:
    async with opened(scenarios.orders()) as screen:
        await screen.keys("d")
        await screen.show(scenarios.normal())
        await screen.says("It is not there at this moment.")
        assert "potential:" not in screen.status


class OneLook:
    """A source of one snapshot that then ends."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = replace(snapshot, ended=True)

    def scan(self, resolve: bool = False) -> Snapshot:
        return self._snapshot

    def waits(self) -> None:
        return None

    def hurry(self) -> None:
        pass

    def set_level(self, name: str) -> str:
        return name

    def close(self) -> None:
        pass


def test_a_suppression_file_applies_to_the_screen() -> None:
    source: Source = OneLook(scenarios.orders())
    feed, seen = PollerFeed(source), queue.Queue[Snapshot]()
    feed.suppressions = suppressions.parse("take_right  # one thread only\n", "here")
    feed.start(seen.put, 0.1)
    try:
        visible = seen.get(timeout=60)
    finally:
        feed.stop()
    assert [cycle.locks for cycle in visible.lock_order] == [(1, 2)]
    assert "1 left out by a suppression file" in details(visible)


async def test_a_pattern_without_a_lock_is_in_the_first_line_and_in_the_help() -> None:
    seen = scenarios.oversubscribed()
    async with opened(seen, size=(80, 24)) as screen:
        before = len(screen.lines)
        assert "oversubscribed (key ?)" in screen.status
        await screen.keys("question_mark")
        await screen.says("5 threads want one of 2 CPUs")
        await screen.keys("escape")
        await screen.show(scenarios.normal())
        assert "oversubscribed" not in screen.status
        assert len(screen.lines) == before


def test_a_pattern_of_a_lock_is_in_the_lock_details_alone() -> None:
    seen = scenarios.oversubscribed()
    of_lock = replace(seen, patterns=(replace(seen.patterns[0], lock=1),))
    assert notes(of_lock) == ()
    assert "Run no more threads" in notes(seen)[0]
