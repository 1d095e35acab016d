"""Very many deadlocks, or threads behind them: the search is bounded, and no deadlock is lost."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.analysis import deadlocks
from locktop.collector.analysis.deadlock_report import reports
from locktop.collector.analysis.wait_for_graph import BlockedThread, Request, WaitForGraph
from locktop.collector.analysis.wait_requests import build_graph
from locktop.collector.model import (
    BlockReason,
    Deadlock,
    DeadlockEdge,
    Held,
    Kind,
    Snapshot,
    ThreadState,
)
from locktop.collector.render.documents import snapshot_codec
from locktop.collector.render.words import deadlock


def waits_of(*edges: tuple[int, int]) -> WaitForGraph:
    """Each thread needs all of those that stand behind it in the pairs."""
    requests: dict[int, list[Request]] = {}
    for tid, holder in edges:
        request = Request(BlockReason.HELD, frozenset({holder}))
        requests.setdefault(tid, []).append(request)
    blocked = {
        tid: BlockedThread(tid, 2, 100 + tid, tuple(of), duration_s=float(tid))
        for tid, of in requests.items()
    }
    return WaitForGraph(blocked, frozenset())


def components_in_a_chain(count: int) -> WaitForGraph:
    """Return pairs of threads that wait for each other; one of each also waits for the next."""
    pairs = [(2 * n + 1, 2 * n + 2) for n in range(count)]
    chain = [(2 * n + 1, 2 * n + 3) for n in range(count - 1)]
    return waits_of(*pairs, *[(b, a) for a, b in pairs], *chain)


def held_by(providers: dict[int, set[int]]) -> WaitForGraph:
    """Each thread waits for one lock, which some threads hold."""
    blocked = {
        tid: BlockedThread(
            tid, 2, 100 + tid, (Request(BlockReason.HELD, frozenset(holders)),), duration_s=1.0
        )
        for tid, holders in providers.items()
    }
    return WaitForGraph(blocked, frozenset())


def cycles(graph: WaitForGraph) -> list[list[int]]:
    return [[edge.tid for edge in one.cycle] for one in deadlocks.find(graph)]


def test_the_first_of_the_shortest_cycles_stands_for_the_deadlock() -> None:
    assert cycles(held_by({1: {2}, 2: {1, 3}, 3: {4}, 4: {1, 3}})) == [[1, 2]]


def with_short_cycle(count: int) -> WaitForGraph:
    """Return a ring of threads. Two of them, but not the first one, also wait for each other."""
    ring = {tid: {tid % count + 1} for tid in range(1, count + 1)}
    return held_by(ring | {3: {2, 4}})


def test_a_cycle_of_all_threads_may_have_a_shorter_one_in_it() -> None:
    assert cycles(with_short_cycle(5)) == [[2, 3]]


def test_the_search_for_a_shorter_cycle_is_bounded() -> None:
    """The first search visits each thread, and each wait."""
    assert cycles(with_short_cycle(2000)) == [[2, 3]]
    assert cycles(with_short_cycle(2001)) == [list(range(1, 2002))]


def test_a_thread_is_stuck_behind_each_deadlock_that_it_reaches() -> None:
    found = deadlocks.find(components_in_a_chain(3))
    assert {(one.cycle[0].tid, one.stuck) for one in found} == {
        (1, ()),
        (3, (1, 2)),
        (5, (1, 2, 3, 4)),
    }
    assert not any(one.stuck_in_part for one in found)


def test_behind_very_many_deadlocks_each_thread_is_listed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = deadlocks.find(components_in_a_chain(50))
    monkeypatch.setattr(deadlocks, "MAX_REACHED", 0)
    found = deadlocks.find(components_in_a_chain(50))
    assert [one.cycle for one in found] == [one.cycle for one in whole], "no deadlock is lost"
    listed = [tid for one in found for tid in one.stuck]
    assert len(listed) == len(set(listed))
    in_cycles = {edge.tid for one in found for edge in one.cycle}
    all_stuck = {tid for one in whole for tid in one.stuck} | in_cycles
    assert in_cycles.union(listed) == all_stuck, "no thread is lost"
    assert {one.cycle[0].tid for one in found if one.stuck_in_part} == {
        one.cycle[0].tid for one, all_ in zip(found, whole, strict=True) if one.stuck != all_.stuck
    }


def test_the_visits_are_bounded_in_all() -> None:
    found = deadlocks.find(components_in_a_chain(2500))
    assert len(found) == 2500
    assert any(one.stuck_in_part for one in found)
    assert sum(len(one.stuck) for one in found) < 2 * deadlocks.MAX_REACHED


def test_each_of_many_readers_that_ended_is_a_deadlock_of_bounded_size() -> None:
    count = 1500
    request = Request(BlockReason.ABANDONED, frozenset(range(1, count + 1)))
    waiters = range(count + 1, 2 * count + 1)
    blocked = {tid: BlockedThread(tid, 1, 7, (request,), duration_s=tid) for tid in waiters}
    found = deadlocks.find(WaitForGraph(blocked, frozenset(range(1, count + 1))))
    assert len(found) == count
    assert {one.cycle[0].tid for one in found} == {2 * count}, "the longest wait stands for all"
    assert sum(len(one.stuck) for one in found) <= deadlocks.MAX_REACHED + count


def with_followers(in_part: bool, *stuck: int) -> Snapshot:
    edges = (DeadlockEdge(1, 1, 2, 0, 0), DeadlockEdge(2, 2, 1, 0, 0))
    found = Deadlock(True, 3.0, edges, stuck=stuck, stuck_in_part=in_part)
    return replace(scenarios.normal(), deadlocks=(found,))


@pytest.mark.parametrize(
    ("in_part", "stuck", "says"),
    [
        (False, (), "already (since 2026-11-21T03:12:42Z)"),
        (False, (3,), "; 1 thread more is stuck behind them"),
        (True, (3, 4), "; at least 2 threads more are stuck behind them"),
        (True, (), "; threads behind an earlier deadlock are stuck behind them"),
    ],
)
def test_text_and_json_say_that_threads_are_left_out(
    in_part: bool, stuck: tuple[int, ...], says: str
) -> None:
    snapshot = with_followers(in_part, *stuck)
    (report,) = reports(snapshot)
    assert deadlock.headline(report).endswith(says)
    document = snapshot_codec.document(snapshot)
    assert document["deadlocks"][0].get("stuck_in_part", False) is in_part
    saved = snapshot_codec.parse(snapshot_codec.encode(snapshot), "saved")
    assert saved.deadlocks[0].stuck_in_part is in_part


def test_the_advice_for_many_deadlocks_makes_its_indexes_once() -> None:
    """2,000 threads with 20 locks each, in deadlocks of two."""
    count = 2000
    threads = tuple(
        replace(
            records.thread(tid, "t", ThreadState.WAITING),
            holds=tuple(Held(lock, 0, None) for lock in range(tid, tid + 20)),
            waiting_for=records.wait(tid ^ 1, Kind.MUTEX, 4.0, tid ^ 1),
        )
        for tid in range(2, count + 2)
    )
    locks = tuple(records.lock(n, f"g_{n}") for n in range(1, count + 22))
    edges = [
        (DeadlockEdge(tid, tid ^ 1, tid ^ 1, 0, 0), DeadlockEdge(tid ^ 1, tid, tid, 0, 0))
        for tid in range(2, count + 2, 2)
    ]
    found = tuple(Deadlock(True, 3.0, cycle) for cycle in edges)
    made = reports(records.snapshot(threads, locks, deadlocks=found))
    assert [len(report.circle) for report in made] == [2] * (count // 2)
    assert all(report.avoidance.order for report in made)


def test_of_many_listed_owners_each_waiter_depends_on_the_observed_one() -> None:
    """A mutex that is handed over stays in the lists of 4,000 threads, and all wait for it."""
    tids = range(1, 4001)
    threads = tuple(
        replace(
            records.thread(tid, "t", ThreadState.WAITING),
            holds=(Held(1, 0, None),),
            waiting_for=replace(records.wait(1, Kind.MUTEX, 4.0, 17), holder_seen=17),
        )
        for tid in tids
    )
    lock = replace(records.lock(1, "baton"), foreign_releases=9)
    graph = build_graph(threads, {1: lock})
    providers = {tid: set(one.requests[0].providers) for tid, one in graph.blocked.items()}
    assert providers == {tid: {17} for tid in tids if tid != 17}
