"""Wait-for graph: locks that threads had at their end, beside living threads."""

from __future__ import annotations

from msgspec.structs import replace
from unit.analysis.test_deadlocks import held, lock, thread, verdict, wait, writes

from locktop.collector.analysis import deadlocks
from locktop.collector.analysis.wait_requests import build_graph
from locktop.collector.model import BlockReason, Kind


def test_a_stale_list_of_an_ended_thread_hides_no_deadlock() -> None:
    """The memory of the lock that the ended thread kept is another lock now."""
    stale = thread(3, None, held(7), alive=False)
    for kind in (Kind.MUTEX, Kind.SPIN):
        first = thread(1, wait(8, kind), held(7))
        second = thread(2, wait(7, kind), held(8))
        assert verdict(first, second, stale, locks={7: lock(7), 8: lock(8)}) == [True]


def test_living_readers_leave_a_doubt_about_an_ended_reader() -> None:
    ended = thread(2, None, held(7, shared=True), alive=False)
    living = thread(3, None, held(7, shared=True))
    assert verdict(thread(1, writes()), ended, living, locks={7: lock(7)}) == [False]
    begun = replace(writes(), duration_s=0.5)
    assert verdict(thread(1, begun), ended, living, locks={7: lock(7)}) == []
    scan = build_graph((thread(1, writes()), ended), {7: lock(7)})
    assert len(deadlocks.find_confirmed(scan, scan)) == 1
    assert deadlocks.find_confirmed(scan, scan, awake={1}) == (), "it may have been woken"


def test_a_sampled_wait_may_have_lasted_for_any_time() -> None:
    begun = replace(wait(7, saw=2), duration_s=0.05)
    assert verdict(thread(1, begun), locks={7: lock(7)}) == []
    sampled = replace(begun, is_lower_bound=True)
    assert verdict(thread(1, sampled), locks={7: lock(7)}) == [False]


def test_a_known_initialiser_closes_a_cycle_while_it_lives() -> None:
    waiter = thread(1, wait(8, Kind.FUTEX), held(7))
    initialiser = thread(2, wait(7))
    locks = {7: lock(7), 8: lock(8)}
    assert verdict(waiter, initialiser, locks=locks) == []
    scan = build_graph((waiter, initialiser), locks, initialisers={1: 2})
    (found,) = deadlocks.find_confirmed(scan, scan)
    assert found.certain
    assert {edge.reason for edge in found.cycle} == {BlockReason.RUNS, BlockReason.HELD}
    ended = thread(2, None, alive=False)
    gone = build_graph((waiter, ended), locks, initialisers={1: 2})
    assert deadlocks.find_confirmed(gone, gone) == ()
