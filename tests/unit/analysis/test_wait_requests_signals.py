"""Wait-for graph: waits that one of several threads ends, and the limits of what is known."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from unit.analysis.test_deadlocks import (
    SEM,
    WRITERS_FIRST,
    at_barrier,
    held,
    lock,
    pairs,
    reads,
    thread,
    user,
    verdict,
    wait,
    waits_of,
    writes,
)

from locktop.collector.analysis import deadlocks, wait_for_graph
from locktop.collector.analysis.wait_for_graph import Request
from locktop.collector.analysis.wait_requests import LIST_GONE, build_graph
from locktop.collector.model import BlockReason, Held, Kind, Lock, LockUse, Thread, Wait

COND, BARRIER = 18, 9


def use(one: Thread, lock_id: int, acquisitions: int, signals: int = 0) -> Thread:
    return replace(one, uses=(LockUse(lock_id, acquisitions, signals),))


def requests(*threads: Thread, of: int = 1, locks: dict[int, Lock] | None = None) -> list[Request]:
    found = build_graph(threads, locks or {}).blocked.get(of)
    return list(found.requests) if found is not None else []


# ---- conditions ----


def cond(**fields: Any) -> dict[int, Lock]:
    return {COND: lock(COND, kind=Kind.COND, **{"signals": 2} | fields)}


def for_cond(**fields: Any) -> Wait:
    return replace(wait(COND, Kind.COND), **fields)


SIGNALLER = use(thread(2, wait(1)), COND, 0, 2)


def test_a_condition_that_only_stuck_threads_signalled_may_be_a_deadlock() -> None:
    waiter = thread(1, for_cond(), held(1))
    assert verdict(waiter, SIGNALLER, locks=cond()) == [False]
    (request,) = requests(waiter, SIGNALLER, locks=cond())
    assert (request.reason, set(request.providers)) == (BlockReason.SIGNALS, {2})
    assert "all threads that have done so are stuck" in request.doubt
    assert "signal it" in request.doubt


@pytest.mark.parametrize(
    ("waits", "others", "locks"),
    [
        (for_cond(pshared=True), (), cond()),
        (for_cond(duration_s=0.9), (), cond()),
        (for_cond(), (replace(thread(3), uses=None),), cond()),
        (for_cond(), (), cond(signals=3)),  # an ended thread has signalled
        (for_cond(), (), cond(signals=None)),
        (for_cond(), (), {}),
        (for_cond(), (use(thread(3, alive=False), COND, 0, 1),), cond(signals=3)),
    ],
    ids=["other process", "just begun", "uses unknown", "ended", "not counted", "no lock", "dead"],
)
def test_a_condition_that_another_thread_may_signal_blocks_nobody(
    waits: Wait, others: tuple[Thread, ...], locks: dict[int, Lock]
) -> None:
    assert verdict(thread(1, waits, held(1)), SIGNALLER, *others, locks=locks) == []


def test_a_condition_that_nobody_signalled_blocks_nobody() -> None:
    waiter = thread(1, for_cond(), held(1))
    never = use(thread(2, wait(1)), COND, 5)
    assert requests(waiter, never, locks=cond(signals=0)) == []


def test_after_a_dormant_time_not_all_signals_are_known() -> None:
    waiter = thread(1, for_cond(), held(1))
    graph = build_graph([waiter, SIGNALLER], cond(), complete=False)
    assert "all threads that are known to have done so" in graph.blocked[1].requests[0].doubt


def test_a_wait_of_a_second_has_its_requests_beside_a_shorter_wait() -> None:
    threads = [thread(1, for_cond(duration_s=0.5)), thread(3, for_cond(duration_s=1.0)), SIGNALLER]
    blocked = build_graph(threads, cond()).blocked
    assert 1 not in blocked
    assert 3 in blocked


# ---- barriers ----


def comes(tid: int, waits_for: Wait | None = None, times: int = 1, alive: bool = True) -> Thread:
    return use(thread(tid, waits_for, alive=alive), BARRIER, times)


STUCK = (comes(2, wait(1)), comes(4, wait(1)))
NEVER_CAME = thread(5)


def test_a_barrier_whose_usual_threads_are_stuck_may_be_a_deadlock() -> None:
    assert verdict(at_barrier(1), *STUCK, NEVER_CAME, locks={}) == [False]
    free, usual = requests(at_barrier(1), *STUCK, NEVER_CAME)
    assert (set(free.providers), free.doubt) == ({2, 4, 5}, "")
    assert set(usual.providers) == {2, 4}
    assert "all threads that have come are stuck" in usual.doubt


@pytest.mark.parametrize(
    "threads",
    [
        (at_barrier(1, parties=4), *STUCK, NEVER_CAME),
        (at_barrier(1), STUCK[0], comes(4, wait(1), times=0), NEVER_CAME),
        (at_barrier(1), STUCK[0], comes(4, alive=False), NEVER_CAME),
        (at_barrier(1), *STUCK, replace(NEVER_CAME, uses=None)),
    ],
    ids=["too few", "one never came", "one has ended", "uses unknown"],
)
def test_a_barrier_that_other_threads_may_reach_is_no_deadlock(
    threads: tuple[Thread, ...],
) -> None:
    assert verdict(*threads, locks={}) == []
    assert len(requests(*threads)) == 1


def test_a_barrier_of_several_processes_blocks_nobody() -> None:
    shared = replace(wait(BARRIER, Kind.BARRIER), parties=3, pshared=True)
    assert requests(thread(1, shared), thread(2, wait(1))) == []


def test_a_barrier_with_all_its_threads_opens() -> None:
    assert requests(at_barrier(1, parties=2), at_barrier(2, parties=2), thread(3)) == []
    assert requests(at_barrier(1, parties=2), thread(3)) != []


# ---- joins, once routines, the program's own locks ----


def test_a_join_needs_a_living_thread() -> None:
    join = replace(wait(7, Kind.JOIN), awaits=2)
    (request,) = requests(thread(1, join), thread(2))
    assert (request.reason, set(request.providers)) == (BlockReason.LIVES, {2})
    assert requests(thread(1, join), thread(2, alive=False)) == []


def test_a_join_and_a_signal_count_only_for_sleepers() -> None:
    join = replace(wait(7, Kind.JOIN), awaits=2)
    asleep = {
        kind: build_graph([thread(1, one), thread(2, None, held(7))], {}).blocked[1].must_be_asleep
        for kind, one in ((Kind.JOIN, join), (Kind.MUTEX, wait(7)), (Kind.SPIN, wait(7, Kind.SPIN)))
    }
    assert asleep == {Kind.JOIN: True, Kind.MUTEX: False, Kind.SPIN: False}


@pytest.mark.parametrize(
    ("kind", "reason", "doubtful"),
    [
        (Kind.ONCE, BlockReason.RUNS, False),
        (Kind.CUSTOM, BlockReason.HELD, True),
        (Kind.SPIN, BlockReason.HELD, False),
    ],
)
def test_the_reason_goes_by_the_kind_of_lock(
    kind: Kind, reason: BlockReason, doubtful: bool
) -> None:
    (request,) = requests(thread(1, wait(7, kind)), thread(2, None, held(7)))
    assert (request.reason, bool(request.doubt)) == (reason, doubtful)


def test_readers_of_the_programs_own_lock_leave_a_doubt() -> None:
    (request,) = requests(thread(1, wait(7, Kind.CUSTOM)), thread(2, None, held(7, shared=True)))
    assert "may give up by itself" in request.doubt


# ---- limits in time ----


def test_waits_of_nearly_the_same_length_have_no_order() -> None:
    def behind(reader_s: float, writer_s: float) -> bool:
        threads = thread(1, reads(duration_s=reader_s)), thread(2, writes(duration_s=writer_s))
        return (1, 2) in pairs(*threads, locks=WRITERS_FIRST)

    assert behind(0.6, 0.55)
    assert not behind(0.6, 0.5)  # the writer came 0.1 s later
    assert not behind(0.1, 5.0)
    assert not behind(0.15, 0.1)
    assert behind(0.11, 0.11)


def test_a_holder_that_waits_for_longer_held_the_lock_when_the_waiter_came() -> None:
    def plausible(holder_s: float, saw: int) -> bool:
        holder = thread(2, wait(8, duration_s=holder_s), held(7))
        return pairs(thread(1, wait(7, saw=saw, duration_s=1.0)), holder) == {(1, 2)}

    assert plausible(1.1, 9)
    assert not plausible(1.2, 9)
    assert plausible(1.2, 2)
    assert plausible(1.2, 0)


def test_a_wait_for_a_lost_owner_counts_after_a_second() -> None:
    def requested(duration_s: float) -> bool:
        one = thread(1, wait(7, saw=2, duration_s=duration_s))
        return bool(requests(one, locks={7: lock(7)}))

    assert requested(1.0)
    assert not requested(0.99)
    freed = {7: lock(7, freed_at_exit=True)}
    assert requests(thread(1, wait(7, saw=2)), locks=freed) == []
    foreign = {7: lock(7, foreign_releases=True)}
    assert requests(thread(1, wait(7, saw=2)), locks=foreign) == []
    assert requests(thread(1, wait(7, saw=2)), locks={}) == []
    assert requests(thread(1, wait(7, Kind.RWLOCK, saw=2)), locks={7: lock(7)}) == []


def test_an_owner_without_an_entry_never_releases_a_lock() -> None:
    dead = thread(2, None, held(7), alive=False)
    graph = build_graph([thread(1, wait(7, saw=2)), dead], {7: lock(7)})
    (request,) = graph.blocked[1].requests
    assert (request.reason, request.sites) == (BlockReason.ABANDONED, {2: 0x20})
    assert graph.ended == {2}
    assert requests(thread(1, wait(7, saw=2)), dead, locks={}) == []


def test_a_writer_that_was_just_woken_waits_for_no_dead_reader() -> None:
    dead = thread(2, None, held(7, shared=True), alive=False)
    for saw, asleep in ((0, True), (2, False)):
        of_peers = replace(wait(7, Kind.RWLOCK, saw=saw), pshared=True)
        graph = build_graph([thread(1, of_peers), dead], {7: lock(7)})
        assert graph.blocked[1].must_be_asleep is asleep


@pytest.mark.parametrize(
    ("kind", "asleep"),
    [(Kind.MUTEX, True), (Kind.RWLOCK, True), (Kind.ONCE, True), (Kind.SPIN, False)],
)
def test_a_thread_that_a_kill_woke_waits_for_no_thread_that_ended_before(
    kind: Kind, asleep: bool
) -> None:
    """The threads of a killed process end one after the other."""
    dead = thread(2, None, held(7), alive=False)
    graph = build_graph([thread(1, wait(7, kind, saw=2)), dead], {7: lock(7)})
    assert graph.blocked[1].must_be_asleep is asleep


# ---- peers, readers, cycles ----


def test_the_hold_of_a_peer_must_not_contradict_the_waiter() -> None:
    peer = replace(thread(2, None, held(7)), pid=99)
    assert pairs(thread(1, wait(7, saw=2)), peer) == {(1, 2)}
    assert pairs(thread(1, wait(7)), peer) == set()


def test_readers_of_a_lock_that_others_release_are_not_certain() -> None:
    reader = thread(2, None, held(7, shared=True))
    foreign = {7: lock(7, foreign_releases=True)}
    assert pairs(thread(1, writes()), reader, locks=foreign) == set()
    assert pairs(thread(1, writes()), reader, locks={7: lock(7)}) == {(1, 2)}


def test_each_reader_has_its_call_site() -> None:
    readers = [thread(tid, None, Held(7, tid, None, 0, True)) for tid in (2, 3)]
    (request,) = requests(thread(1, writes()), *readers)
    assert (request.sites, request.is_or) == ({2: 2, 3: 3}, False)


def test_the_shortest_cycle_stands_for_a_component() -> None:
    ring = ((1, 2), (2, 3), (3, 4), (4, 1))
    (found,) = deadlocks.find(waits_of(*ring, (4, 3)))
    assert [edge.tid for edge in found.cycle] == [3, 4]
    assert found.stuck == (1, 2)
    (found,) = deadlocks.find(waits_of(*ring, (2, 1)))
    assert [edge.tid for edge in found.cycle] == [1, 2]


def test_the_other_waits_stay_where_a_thread_left_its_wait() -> None:
    graph = waits_of((1, 2), (2, 3), (3, 1))
    assert wait_for_graph.remove_waits(graph, {1}).blocked.keys() == {2, 3}


def test_a_thread_that_waits_for_a_semaphore_that_it_has_differs_from_the_others() -> None:
    one_out = lock(SEM, kind=Kind.SEM, first_value=1, life_acquisitions=5, life_signals=4)
    holder, other = user(1, wait(SEM, Kind.SEM), 5, 4), user(2, wait(SEM, Kind.SEM), 0, 0)
    graph = build_graph([holder, other], {SEM: one_out})
    assert graph.blocked[1].requests is not graph.blocked[2].requests


# ---- semaphores that threads of the parent had at a fork ----

FIRST = 2


def at_fork(*threads: Thread, complete: bool = True, **fields: Any) -> list[Request]:
    """The requests of thread 1, whose process is a forked child with the first thread 2."""
    known = {"parent_posts": 16, "life_acquisitions": 0, "life_signals": 0}
    inherited = {SEM: lock(SEM, kind=Kind.SEM, **known | fields)}
    found = build_graph(threads, inherited, complete, FIRST).blocked.get(1)
    return list(found.requests) if found is not None else []


def test_a_lock_of_the_parent_that_no_thread_of_the_child_got_needs_the_first_thread() -> None:
    waiter, first = user(1, wait(SEM, Kind.SEM), 0, 0), thread(FIRST)
    (request,) = at_fork(waiter, first)
    assert (request.reason, set(request.providers)) == (BlockReason.AT_FORK, {FIRST})
    assert (request.is_or, request.doubt) == (True, "")
    (request,) = at_fork(waiter, first, thread(3))
    assert set(request.providers) == {FIRST}


@pytest.mark.parametrize("posts", [3, 16])
def test_no_thread_posts_a_lock_of_the_parent_that_the_only_thread_of_the_child_wants(
    posts: int,
) -> None:
    ended, of_peer = thread(3, alive=False), replace(thread(4), pid=77)
    (request,) = at_fork(user(1, wait(SEM, Kind.SEM), 0, 0), ended, of_peer, parent_posts=posts)
    assert (request.reason, set(request.providers)) == (BlockReason.AT_FORK, set())
    graph = build_graph(
        (user(FIRST, wait(SEM, Kind.SEM), 0, 0), thread(3)),
        {SEM: lock(SEM, kind=Kind.SEM, parent_posts=16, life_acquisitions=0, life_signals=0)},
        first_thread=FIRST,
    )
    (found,) = deadlocks.find(graph)
    assert found.certain
    assert [(edge.tid, edge.held_by) for edge in found.cycle] == [(FIRST, 0)]


@pytest.mark.parametrize(
    "fields",
    [
        {"parent_posts": 2},
        {"generation": 1},
        {"foreign_releases": True},
        {"life_acquisitions": 1},
        {"life_signals": 1},
        {"life_acquisitions": None, "life_signals": None},
        {"complete": False},
    ],
    ids=str,
)
def test_a_semaphore_that_the_child_may_post_has_no_such_request(fields: dict[str, Any]) -> None:
    waiter = user(1, wait(SEM, Kind.SEM), 0, 0)
    assert BlockReason.AT_FORK not in {one.reason for one in at_fork(waiter, **fields)}


def test_waits_that_others_may_end_have_no_such_request() -> None:
    waiter = user(1, wait(SEM, Kind.SEM), 0, 0)
    assert at_fork(user(1, replace(wait(SEM, Kind.SEM), pshared=True), 0, 0)) == []
    assert at_fork(user(1, wait(SEM, Kind.SEM, timed=True), 0, 0)) == []
    assert at_fork(waiter, replace(thread(3), uses=None)) == []
    assert at_fork(waiter, thread(FIRST), parent_posts=15) == [], "another thread may post it"


def test_a_mutex_of_a_thread_that_the_fork_left_behind_stays_taken_for_the_first_thread() -> None:
    def doubts(waiter: int, left: set[int]) -> list[str]:
        graph = build_graph(
            [thread(waiter, wait(7, saw=5))], {7: lock(7)}, first_thread=FIRST, left_by_fork=left
        )
        blocked = graph.blocked[waiter]
        assert blocked.must_be_asleep
        return [request.doubt for request in blocked.requests]

    assert doubts(FIRST, {5}) == [""]
    assert doubts(FIRST, {6}) == doubts(FIRST, set()) == [LIST_GONE]
    assert doubts(1, {5}) == [LIST_GONE], "the first thread may have the mutex since before"
