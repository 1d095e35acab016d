"""Wait-for graph, deadlocks, states and rates, compared with a checker by brute force."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from msgspec.structs import replace

from locktop.collector.analysis import deadlocks, rates, wait_for_graph
from locktop.collector.analysis.idle import classifier
from locktop.collector.analysis.wait_for_graph import BlockedThread, Request, WaitForGraph
from locktop.collector.analysis.wait_requests import build_graph
from locktop.collector.model import (
    BlockReason,
    Held,
    Kind,
    Lock,
    LockUse,
    Thread,
    ThreadState,
    Wait,
)


def thread(tid: int, waits_for: Wait | None = None, *holds: Held, alive: bool = True) -> Thread:
    return Thread(
        tid=tid, name="", alive=alive, state=ThreadState.OTHER, waiting_for=waits_for, holds=holds,
        wait_s={}, cpu_s=0.0, acquisitions=0, contended=0,
    )  # fmt: skip


def wait(
    lock: int,
    kind: Kind = Kind.MUTEX,
    seq: int = 2,
    *,
    timed: bool = False,
    shared: bool = False,
    saw: int = 0,
    duration_s: float = 1.0,
) -> Wait:
    return Wait(lock, kind, duration_s, (), 5, 0x10, seq, timed, shared, saw)


def held(lock: int, shared: bool = False) -> Held:
    return Held(lock, 0x20, None, 0, shared)


def lock(id_: int, kind: Kind = Kind.MUTEX, **fields: Any) -> Lock:
    return Lock(
        id=id_, address=id_, kind=kind, name="", acquisitions=0, contended=0,
        trylock_failed=0, wait_s=0, wait_max_s=0, hold_s=0, hold_timed=0, hold_max_s=0,
        holders=(), waiters=(), wait_stacks=(), **fields,
    )  # fmt: skip


def pairs(*threads: Thread, locks: dict[int, Lock] | None = None) -> set[tuple[int, int]]:
    """The pairs of a waiting thread and a thread that the waiter waits for."""
    found = build_graph(threads, locks or {})
    return {
        (tid, provider)
        for tid, blocked in found.blocked.items()
        for one in blocked.requests
        for provider in one.providers
    }


def test_a_waiter_requests_the_lock_of_its_holder() -> None:
    (blocked,) = build_graph([thread(1, wait(7)), thread(2, None, held(7))], {}).blocked.values()
    assert (blocked.tid, blocked.lock, blocked.stack) == (1, 7, 5)
    assert [(one.reason, one.providers, one.sites) for one in blocked.requests] == [
        (BlockReason.HELD, {2}, {2: 0x20})
    ]


def test_a_writer_waits_for_each_reader_but_a_reader_only_for_the_writer() -> None:
    readers = [thread(2, None, held(7, shared=True)), thread(3, None, held(7, shared=True))]
    assert pairs(thread(1, wait(7, Kind.RWLOCK)), *readers) == {(1, 2), (1, 3)}
    assert pairs(thread(1, wait(7, Kind.RWLOCK, shared=True)), *readers) == set()
    writer = thread(2, None, held(7))
    assert pairs(thread(1, wait(7, Kind.RWLOCK, shared=True)), writer) == {(1, 2)}


WRITERS_FIRST = {7: lock(7, writers_first=True)}


def reads(**how: float | bool) -> Wait:
    return wait(7, Kind.RWLOCK, shared=True, **how)  # type: ignore[arg-type]


def writes(**how: float | bool) -> Wait:
    return wait(7, Kind.RWLOCK, **how)  # type: ignore[arg-type]


def test_a_reader_waits_behind_a_writer_if_writers_go_first() -> None:
    again = thread(1, reads(), held(7, shared=True))
    writer = thread(2, writes())
    assert pairs(again, writer) == {(2, 1)}, "readers go first"
    assert pairs(again, writer, locks=WRITERS_FIRST) == {(1, 2), (2, 1)}
    found = build_graph([again, writer], WRITERS_FIRST)
    (stuck,) = deadlocks.find_confirmed(found, found)
    assert [(e.tid, e.held_by, e.behind) for e in stuck.cycle] == [(1, 2, True), (2, 1, False)]
    # The reader needs not hold the lock itself.
    holder = thread(3, wait(8), held(7, shared=True))
    found = build_graph([thread(1, reads(), held(8)), writer, holder], WRITERS_FIRST)
    (stuck,) = deadlocks.find_confirmed(found, found)
    assert [(e.tid, e.held_by) for e in stuck.cycle] == [(1, 2), (2, 3), (3, 1)]


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        (reads(), writes(timed=True)),  # the writer gives up, and lets the reader in
        (reads(timed=True), writes()),
        (reads(duration_s=2.0), writes(duration_s=1.0)),  # the writer came later
        (
            reads(duration_s=0.05),
            writes(duration_s=0.06),
        ),  # the order of the waits is not known yet
        (reads(), wait(8, Kind.RWLOCK)),
        (reads(), reads()),
    ],
)
def test_a_reader_without_a_writer_before_has_no_request(reader: Wait, writer: Wait) -> None:
    assert (1, 2) not in pairs(thread(1, reader), thread(2, writer), locks=WRITERS_FIRST)


def test_only_some_of_many_writers_are_providers() -> None:
    readers = [thread(n, reads()) for n in range(100)]
    writers = [thread(1000 + n, writes(duration_s=9.0 - n / 100)) for n in range(100)]
    found = pairs(*readers, *writers, locks=WRITERS_FIRST)
    assert len(found) <= 8 * 100
    assert (5, 1000) in found


@pytest.mark.parametrize(
    "waiter",
    [
        thread(1, wait(7, timed=True)),
        thread(1, wait(7, Kind.SEM)),
        thread(1, wait(7, Kind.COND)),
        thread(1, wait(7), alive=False),
        thread(1, wait(8)),
        thread(1),
    ],
)
def test_waits_without_a_request(waiter: Thread) -> None:
    assert pairs(waiter, thread(2, None, held(7))) == set()


def test_a_lock_released_by_other_threads_is_held_by_the_observed_owner_alone() -> None:
    foreign = {7: lock(7, foreign_releases=True)}
    stale, owner = thread(2, None, held(7)), thread(3, None, held(7))
    assert pairs(thread(1, wait(7)), stale, locks=foreign) == set()
    assert pairs(thread(1, wait(7, saw=3)), stale, locks=foreign) == set()
    assert pairs(thread(1, wait(7, saw=3)), stale, owner, locks=foreign) == {(1, 3)}
    assert pairs(thread(1, wait(7, saw=1), held(7)), locks=foreign) == set(), (
        "the thread waits for a turn"
    )


def test_a_thread_never_waits_for_its_own_recursive_lock() -> None:
    alone = thread(1, wait(7, saw=1), held(7))
    assert pairs(alone, locks={7: lock(7, recursive=True)}) == set()
    assert pairs(alone, locks={7: lock(7)}) == {(1, 1)}


def test_a_stale_held_list_names_no_holder() -> None:
    # The thread lists the lock that it waits for, but saw another owner.
    assert pairs(thread(1, wait(7, saw=9), held(7))) == set()
    # Two threads list one mutex: only the observed owner holds the mutex.
    both = (thread(2, None, held(7)), thread(3, None, held(7)))
    assert pairs(thread(1, wait(7, saw=3)), *both) == {(1, 3)}
    assert pairs(thread(1, wait(7)), *both) == set()
    # Thread 2 has waited longer, so it held its locks when thread 1 came.
    stuck = thread(2, wait(8, duration_s=2.0), held(7))
    assert pairs(thread(1, wait(7, saw=9)), stuck) == set()
    assert pairs(thread(1, wait(7, saw=2)), stuck) == {(1, 2)}
    # Thread 2 came later, and may have taken the lock while thread 1 waited.
    later = thread(2, wait(8, duration_s=0.5), held(7))
    assert pairs(thread(1, wait(7, saw=9)), later) == {(1, 2)}


def waits_of(*edges: tuple[int, int], seq: int = 2, **how: Any) -> WaitForGraph:
    """Each pair is a thread and a provider; a thread needs all its providers."""
    blocked = {
        tid: BlockedThread(
            tid,
            seq,
            100 + tid,
            tuple(
                Request(BlockReason.HELD, frozenset({holder}), **how)
                for one, holder in edges
                if one == tid
            ),
            duration_s=float(tid),
        )
        for tid in {one for one, _ in edges}
    }
    return WaitForGraph(blocked, frozenset())


RING = ((1, 2), (2, 3), (3, 1))


def test_two_scans_with_the_same_waits_make_a_deadlock() -> None:
    found = deadlocks.find_confirmed(waits_of(*RING), waits_of(*RING, (4, 1), (5, 4)))
    assert [[e.tid for e in one.cycle] for one in found] == [[1, 2, 3]]
    assert [(e.waits_for, e.held_by) for e in found[0].cycle] == [(101, 2), (102, 3), (103, 1)]
    assert found[0].stuck == (), "these waits are new"
    behind = waits_of(*RING, (4, 1), (5, 4), (6, 7))
    assert deadlocks.find_confirmed(behind, behind)[0].stuck == (4, 5)
    assert [one.since_s for one in found] == [1.0], "the shortest wait"


def test_another_wait_for_the_same_lock_makes_no_deadlock() -> None:
    assert deadlocks.find_confirmed(waits_of(*RING), waits_of(*RING, seq=4)) == ()
    assert deadlocks.find_confirmed(waits_of(), waits_of(*RING)) == ()
    assert deadlocks.find_confirmed(waits_of((1, 2), (2, 1)), waits_of((1, 2), (2, 3))) == ()


def test_a_doubt_makes_every_deadlock_only_possible() -> None:
    itself = waits_of((1, 1))
    found = deadlocks.find_confirmed(itself, itself, doubt="why")
    assert [(one.certain, one.doubt) for one in found] == [(False, "why")]
    assert [(one.certain, one.doubt) for one in deadlocks.find(itself)] == [(True, "")]
    may_end = waits_of((1, 1), doubt="who knows")
    assert [(one.certain, one.doubt) for one in deadlocks.find(may_end)] == [(False, "who knows")]


def test_one_provider_satisfies_an_or_request() -> None:
    either = Request(BlockReason.GOT, frozenset({2, 3}), is_or=True)
    blocked = dict(waits_of((2, 1), (1, 9), (3, 3)).blocked)
    blocked[1] = BlockedThread(1, 2, 101, (either,))
    found = deadlocks.find(WaitForGraph(blocked, frozenset()))
    assert sorted(edge.tid for one in found for edge in one.cycle) == [1, 2, 3]
    del blocked[3]
    assert deadlocks.find(WaitForGraph(blocked, frozenset())) == (), "thread 3 may be the provider"


def test_a_request_without_a_provider_is_a_deadlock() -> None:
    blocked = {1: BlockedThread(1, 2, 7, (Request(BlockReason.ABSENT, frozenset(), is_or=True),))}
    (found,) = deadlocks.find(WaitForGraph(blocked, frozenset()))
    assert [(e.tid, e.held_by, e.reason) for e in found.cycle] == [(1, 0, BlockReason.ABSENT)]


def components_by_brute_force(edges: set[tuple[int, int]]) -> set[frozenset[int]]:
    """Strongly connected components with a cycle, by repeated closure."""
    reach = set(edges)
    while True:
        more = {(a, d) for (a, b), (c, d) in itertools.product(reach, reach) if b == c} - reach
        if not more:
            break
        reach |= more
    stuck = {a for a, b in reach if a == b}
    return {frozenset(b for b in stuck if {(a, b), (b, a)} <= reach) for a in stuck}


def test_cycles_agree_with_brute_force() -> None:
    chance = random.Random(7)
    with_components = 0
    for _ in range(1500):
        size = chance.randint(1, 8)
        edges = {
            (chance.randint(1, size), chance.randint(1, size)) for _ in range(chance.randint(0, 10))
        }
        components = components_by_brute_force(edges)
        with_components += bool(components)
        found = deadlocks.find(waits_of(*edges))
        assert len(found) == len(components)
        for one in found:
            tids = [edge.tid for edge in one.cycle]
            assert {(edge.tid, edge.held_by) for edge in one.cycle} <= edges
            assert [edge.held_by for edge in one.cycle] == [*tids[1:], tids[0]]
            assert len(set(tids)) == len(tids)
            assert tids[0] == min(tids)
            assert any(set(tids) <= component for component in components)
    assert 200 < with_components < 1400


def test_a_long_ring_is_found_without_recursion() -> None:
    count = 5000
    found = deadlocks.find(waits_of(*[(n, n % count + 1) for n in range(1, count + 1)]))
    assert [len(one.cycle) for one in found] == [count]


def test_each_thread_has_a_state() -> None:
    assert classifier.state(Kind.RWLOCK, "S") is ThreadState.WAITING
    assert classifier.state(Kind.SEM, "R") is ThreadState.IDLE
    assert classifier.state(None, "R") is ThreadState.RUNNING
    assert classifier.state(None, "S") is ThreadState.IDLE
    assert [classifier.state(None, letter) for letter in ("D", "T", "")] == [ThreadState.OTHER] * 3


def test_rates_and_shares_are_those_between_two_scans() -> None:
    assert rates.lock_rates(2.0, 10, 4, 1.0, -0.1, 6, 0.5) == rates.LockRates(5, 2, 0.5, 0, 3, 0.25)
    assert rates.lock_rates(0.0, 10, 4, 1.0, 0.0, 6, 0.0) == rates.LockRates()
    assert [rates.share(part, 2.0) for part in (-1, 1, 3)] == [0, 0.5, 1]
    assert rates.share(1, 0) == 0
    assert rates.split({Kind.MUTEX: 1.0, Kind.RWLOCK: 2.0, Kind.COND: 4.0}) == (3.0, 4.0)


SEM, BARRIER = 8, 9


def sem(first_value: int | None, **fields: Any) -> dict[int, Lock]:
    return {SEM: lock(SEM, kind=Kind.SEM, first_value=first_value, **fields)}


def user(tid: int, waits_for: Wait | None, acquisitions: int, posts: int, **fields: Any) -> Thread:
    return replace(
        thread(tid, waits_for, held(tid)), uses=(LockUse(SEM, acquisitions, posts),), **fields
    )


def gets(**how: Any) -> Wait:
    return wait(SEM, Kind.SEM, **how)


def verdict(
    *threads: Thread, locks: dict[int, Lock], ended: int = 0, complete: bool = True
) -> list[bool]:
    """Whether each deadlock is certain. ``ended``: units that ended threads have got."""
    if SEM in locks:
        had = ended + sum(
            use.acquisitions - use.signals for one in threads for use in one.uses or ()
        )
        posts = locks[SEM].life_signals or 0
        locks = {SEM: replace(locks[SEM], life_signals=posts, life_acquisitions=posts + had)}
    return [one.certain for one in deadlocks.find(build_graph(threads, locks, complete))]


def test_a_semaphore_posted_by_its_getters_alone_is_held() -> None:
    waiter = user(2, gets(), 3, 3)
    holder = user(1, wait(2), 4, 3)
    assert verdict(holder, waiter, locks=sem(1)) == [True]
    assert verdict(holder, waiter, locks=sem(2)) == [], "a unit is on its way"
    assert verdict(holder, waiter, user(3, None, 1, 0), locks=sem(2)) == [], (
        "another thread has a unit"
    )
    assert verdict(holder, waiter, locks=sem(None)) == [False], "the number of units is not known"
    not_counted = sem(1)  # no life counts
    assert list(deadlocks.find(build_graph((holder, waiter), not_counted, True))) == []
    shared = user(2, replace(gets(), pshared=True), 3, 3)
    assert verdict(holder, shared, locks=sem(1)) == [False]
    assert verdict(holder, waiter, thread(3), locks=sem(1)) == [True]
    unknown = replace(thread(3), uses=None)
    assert verdict(holder, waiter, unknown, locks=sem(1)) == [], (
        "the thread may have posted the semaphore too"
    )
    assert verdict(holder, waiter, locks=sem(1), ended=1) == [], (
        "an ended thread may have got the unit"
    )
    assert verdict(holder, waiter, locks=sem(1), complete=False) == [False]


def test_a_thread_that_never_posted_may_hold_a_slot_of_a_queue() -> None:
    waiter = user(2, gets(), 0, 0)
    assert verdict(user(1, wait(2), 1, 0), waiter, locks=sem(1)) == [True]
    assert verdict(user(1, wait(2), 1, 0, signals=True), waiter, locks=sem(1)) == [False]
    assert verdict(user(1, gets(), 1, 0), locks=sem(1)) == [], "a full queue"
    assert verdict(user(1, gets(), 2, 1), locks=sem(1)) == [True]
    again = user(1, gets(), 2, 1)
    assert verdict(again, thread(2, wait(1)), locks=sem(None)) == []


def test_signals_between_threads_require_many_posts_for_certainty() -> None:
    """Python locks are such semaphores: a thread may get a lock to wait for another thread."""
    waiter = user(2, gets(), 0, 0)
    for posts, certain in ((1, False), (2, False), (3, True)):
        holder = user(1, wait(2), posts + 1, posts, signals=True)
        assert verdict(holder, waiter, locks=sem(1)) == [certain]
    for posts, found in ((15, []), (16, [True])):
        itself = user(1, gets(), posts + 1, posts, signals=True)
        assert verdict(itself, locks=sem(1)) == found
        ended = user(1, None, posts + 1, posts, signals=True, alive=False)
        assert verdict(ended, waiter, locks=sem(1)) == found


def test_counts_of_former_semaphores_at_the_address_do_not_count() -> None:
    def of_life(one: Thread) -> Thread:
        return replace(one, uses=tuple([replace(use, life=1) for use in one.uses or ()]))

    itself = user(1, gets(), 5, 4)
    assert verdict(itself, locks=sem(1)) == [True]
    assert verdict(itself, locks=sem(1, generation=1)) == []
    assert verdict(of_life(itself), locks=sem(1, generation=1)) == [True]
    holder, waiter = user(1, wait(2), 4, 3, signals=True), user(2, gets(), 0, 0)
    assert verdict(of_life(holder), waiter, locks=sem(1, generation=1)) == [True]
    assert verdict(holder, waiter, locks=sem(1, generation=1)) == []


def test_a_semaphore_that_moved_on_between_two_scans_blocks_no_thread() -> None:
    def scan(*posts: int) -> WaitForGraph:
        threads = (user(1, wait(2), posts[0] + 1, posts[0]), user(2, gets(), posts[1], posts[1]))
        return build_graph(
            threads, {SEM: replace(sem(1)[SEM], life_acquisitions=1, life_signals=0)}
        )

    assert len(deadlocks.find_confirmed(scan(3, 3), scan(3, 3))) == 1
    assert deadlocks.find_confirmed(scan(3, 3), scan(4, 3)) == ()
    assert deadlocks.find_confirmed(scan(3, 3), scan(3, 4)) == ()


def test_a_thread_that_left_its_wait_is_in_no_cycle() -> None:
    ring = waits_of(*RING)
    left = wait_for_graph.remove_waits(ring, {RING[0][0]})
    assert len(deadlocks.find_confirmed(ring, ring)) == 1
    assert deadlocks.find_confirmed(left, ring) == ()
    assert wait_for_graph.remove_waits(ring, frozenset()) is ring


def test_a_thread_that_posted_one_of_several_units_may_post_again() -> None:
    holder, waiter = user(1, wait(2), 4, 2), user(2, gets(), 0, 0)
    assert verdict(holder, waiter, locks=sem(2)) == [True]
    assert verdict(holder, waiter, user(3, None, 1, 1), locks=sem(2)) == []
    assert verdict(holder, waiter, user(3, wait(2), 1, 1), locks=sem(2)) == [True]


def test_a_semaphore_posted_by_a_thread_without_a_unit_is_no_lock() -> None:
    holder, waiter = user(1, wait(2), 1, 0), user(2, gets(), 0, 0)
    assert verdict(holder, waiter, locks=sem(1, foreign_releases=True)) == [], (
        "no thread posts the semaphore"
    )
    poster = user(1, wait(2), 1, 1)
    assert verdict(poster, waiter, locks=sem(0, foreign_releases=True, life_signals=1)) == [False]
    assert verdict(poster, waiter, locks=sem(0, foreign_releases=True, life_signals=2)) == [], (
        "an ended thread posted, so other threads may follow"
    )
    assert verdict(user(1, wait(2), 0, 1), waiter, locks=sem(1, life_signals=1)) == [False]
    before = user(3, None, 2, 2)
    assert verdict(user(1, wait(2), 1, 0, signals=True), waiter, before, locks=sem(1)) == [False]
    soon = user(2, gets(duration_s=0.5), 0, 0)
    assert verdict(poster, soon, locks=sem(0, foreign_releases=True, life_signals=1)) == []


def at_barrier(tid: int, parties: int = 3) -> Thread:
    return thread(tid, replace(wait(BARRIER, Kind.BARRIER), parties=parties), held(tid))


def test_a_barrier_waits_for_all_threads_that_have_not_arrived() -> None:
    assert verdict(at_barrier(1), thread(2, wait(1)), locks={}) == [True]
    assert verdict(at_barrier(1), thread(2, wait(1)), thread(3), locks={}) == [], (
        "the thread may arrive"
    )
    assert verdict(at_barrier(1), at_barrier(2), locks={}) == [True], "no thread is left"
    three = (at_barrier(1), at_barrier(2), at_barrier(3), thread(4, wait(1)))
    assert verdict(*three, locks={}) == [], "these threads may go on"
    assert verdict(at_barrier(1, parties=0), thread(2, wait(1)), locks={}) == [], (
        "the number of threads is not known"
    )


def test_a_spin_lock_listed_by_two_threads_has_no_plausible_holder() -> None:
    first_life, spin = {7: lock(7)}, wait(7, Kind.SPIN)
    assert pairs(thread(1, spin, held(7)), locks=first_life) == {(1, 1)}
    assert pairs(thread(1, spin, held(7)), locks={7: lock(7, generation=1)}) == set()
    assert pairs(thread(1, spin), thread(2, None, held(7)), thread(3, None, held(7))) == set()


def test_an_ended_thread_never_releases_a_lock() -> None:
    dead = thread(2, None, held(7), alive=False)
    assert verdict(thread(1, wait(7, saw=2)), dead, locks={7: lock(7)}) == [True]
    assert verdict(thread(1, wait(7, saw=3)), dead, locks={7: lock(7)}) == [], "the list is stale"
    assert verdict(thread(1, wait(7, saw=2)), dead, locks={7: lock(7, freed_at_exit=True)}) == []
    reader = thread(2, None, held(7, shared=True), alive=False)
    assert verdict(thread(1, writes()), reader, locks={7: lock(7)}) == [True]
    assert verdict(thread(1, writes()), reader, locks={7: lock(7, generation=1)}) == []
    # The held list is gone: the thread may have released the lock before.
    assert verdict(thread(1, wait(7, saw=2)), locks={7: lock(7)}) == [False]
    assert verdict(thread(1, wait(7, saw=2)), thread(2), locks={7: lock(7)}) == []
    other = replace(wait(7, saw=2), pshared=True)
    assert verdict(thread(1, other), locks={7: lock(7)}) == [], "the holder is in another process"


def test_a_thread_awake_between_the_scans_is_not_stuck_at_a_signal() -> None:
    threads = (user(1, wait(2), 4, 3), user(2, gets(), 3, 3))
    scan = build_graph(threads, {SEM: replace(sem(1)[SEM], life_acquisitions=1, life_signals=0)})
    assert len(deadlocks.find_confirmed(scan, scan)) == 1
    assert deadlocks.find_confirmed(scan, scan, awake={2}) == ()
    assert len(deadlocks.find_confirmed(scan, scan, awake={1})) == 1, "the thread lists the lock"


def test_the_work_grows_linearly_with_the_threads() -> None:
    """Readers of one lock, as many waiting writers, and a thread that waits for a writer."""

    def graph(count: int) -> int:
        readers = [thread(n, wait(8), held(7, shared=True)) for n in range(1, count + 1)]
        writers = [thread(1000 + n, writes()) for n in range(count)]
        threads = [*readers, *writers, thread(9999, None, held(8))]
        scanned = build_graph(threads, {})
        requests = {
            id(one): one for blocked in scanned.blocked.values() for one in blocked.requests
        }
        return sum(len(one.providers) for one in requests.values())

    assert graph(400) <= 2 * graph(200)
