"""Potential deadlocks in lock orders, compared with all schedules of random small programs."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from locktop.collector.analysis import happens_before, lock_order_cycles
from locktop.collector.analysis.happens_before import ThreadLife
from locktop.collector.analysis.lock_order_cycles import (
    HeldLock,
    LockFacts,
    ObservedOrder,
    PotentialDeadlocks,
)
from locktop.collector.model import Confidence, OrderCycle

MAIN = 1


def cycles(
    orders: Sequence[ObservedOrder], lives: Mapping[int, ThreadLife], about: Mapping[int, LockFacts]
) -> tuple[OrderCycle, ...]:
    """Return also the cycles of lock classes; the facts about locks are certain."""
    found = lock_order_cycles.find(orders, lives, about, of_classes=True)
    assert found.unproven == 0
    return found.cycles


# ---- random programs ----


@dataclass(frozen=True)
class Take:
    """Request a lock."""

    lock: int
    shared: bool


@dataclass(frozen=True)
class Give:
    """Release the lock that the thread took last."""


@dataclass(frozen=True)
class Create:
    """Start a thread."""

    thread: int


@dataclass(frozen=True)
class Join:
    """Wait for the end of a thread."""

    thread: int


Step = Take | Give | Create | Join


@dataclass
class Program:
    """The steps of each thread; thread 0 begins."""

    threads: list[list[Step]] = field(default_factory=list)


def block(chance: random.Random, locks: list[int], rwlocks: set[int], depth: int) -> Iterator[Step]:
    lock = chance.choice(locks)
    yield Take(lock, lock in rwlocks and chance.random() < 0.6)
    rest = [other for other in locks if other != lock]
    for _ in range(chance.choice([0, 1, 1, 2]) if depth and rest else 0):
        yield from block(chance, rest, rwlocks, depth - 1)
    yield Give()


def made(seed: int) -> Program:
    chance = random.Random(seed)
    locks = list(range(1, chance.randint(2, 4) + 1))
    rwlocks = {lock for lock in locks if chance.random() < 0.4}
    workers = chance.randint(1, 3)
    program = Program([[]])
    for _ in range(workers):
        blocks = [block(chance, locks, rwlocks, 2) for _ in range(chance.randint(1, 2))]
        program.threads.append([step for one in blocks for step in one])
    first = program.threads[0]
    living: list[int] = []
    for worker in range(1, workers + 1):
        if chance.random() < 0.4:
            first.extend(block(chance, locks, rwlocks, 1))
        first.append(Create(worker))
        living.append(worker)
        if chance.random() < 0.4:
            first.append(Join(living.pop(chance.randrange(len(living)))))
    if chance.random() < 0.4:
        first.extend(block(chance, locks, rwlocks, 1))
    return program


# ---- all schedules ----


def held_by(steps: list[Step], done: int) -> list[Take]:
    held: list[Take] = []
    for step in steps[:done]:
        if isinstance(step, Take):
            held.append(step)
        elif isinstance(step, Give):
            held.pop()
    return held


def deadlocks(program: Program) -> bool:
    """Whether some schedule reaches a state in which threads remain and none can go on.

    Readers go first, as in glibc by default.
    """
    threads = program.threads
    begin = (0, *(-1 for _ in threads[1:]))  # steps done by each thread, -1: not created
    ahead, seen = [begin], {begin}
    while ahead:
        state = ahead.pop()
        held = [held_by(steps, max(at, 0)) for steps, at in zip(threads, state, strict=True)]
        moved = False
        for thread, at in enumerate(state):
            if at < 0 or at == len(threads[thread]):
                continue
            step = threads[thread][at]
            after = list(state)
            after[thread] += 1
            if isinstance(step, Take) and any(
                other.lock == step.lock and not (other.shared and step.shared)
                for who, locks in enumerate(held)
                if who != thread
                for other in locks
            ):
                continue
            if isinstance(step, Join) and state[step.thread] != len(threads[step.thread]):
                continue
            if isinstance(step, Create):
                after[step.thread] = 0
            moved = True
            following = tuple(after)
            if following not in seen:
                seen.add(following)
                ahead.append(following)
        if not moved and any(at < len(steps) for at, steps in zip(state, threads, strict=True)):
            return True
    return False


# ---- records of one run ----


def noted(program: Program) -> tuple[list[ObservedOrder], dict[int, ThreadLife]]:
    """The records of the library for a run without any contention."""
    orders: list[ObservedOrder] = []
    begun: dict[int, int] = {}
    ended: dict[int, int] = {}
    for thread, steps in enumerate(program.threads):
        segment, held = 0, list[HeldLock]()
        for at, step in enumerate(steps):
            if isinstance(step, Take):
                if held:
                    who = ((thread + MAIN, segment),)
                    orders.append(
                        ObservedOrder(1, step.lock, 0, step.shared, False, at, tuple(held), who)
                    )
                held.append(HeldLock(step.lock, 0, step.shared, at))
            elif isinstance(step, Give):
                held.pop()
            elif isinstance(step, Create):
                begun[step.thread] = segment
                segment += 1
            else:
                segment += 1
                ended[step.thread] = segment
    lives = {MAIN: ThreadLife(100, 0, 0, 0, 0)} | {
        thread + MAIN: ThreadLife(
            100 + thread, MAIN, segment, MAIN if thread in ended else 0, ended.get(thread, 0)
        )
        for thread, segment in begun.items()
    }
    return orders, lives


def found(program: Program) -> tuple[OrderCycle, ...]:
    orders, lives = noted(program)
    return cycles(orders, lives, {lock: LockFacts() for lock in range(1, 5)})


def test_a_cycle_is_found_exactly_if_some_schedule_deadlocks() -> None:
    verdicts = {True: 0, False: 0}
    nested = 0
    for seed in range(1500):
        program = made(seed)
        reported = found(program)
        real = deadlocks(program)
        assert bool(reported) == real, f"seed {seed}: {program}"
        assert all(cycle.confidence is Confidence.HIGH for cycle in reported)
        verdicts[real] += 1
        nested += not real and bool(noted(program)[0])
    assert min(verdicts.values()) > 100, verdicts
    assert nested > 100


# ---- particulars ----


def order(
    held: list[int], lock: int, *seen: int, stack: int = 1, generation: int = 0, epoch: int = 1
) -> ObservedOrder:
    return ObservedOrder(
        epoch, lock, generation, False, False, stack,
        tuple(HeldLock(one, 0, False, 0x10 + one) for one in held),
        tuple((serial, 0) for serial in seen),
    )  # fmt: skip


LIVES = {serial: ThreadLife(1000 + serial, 0, 0, 0, 0) for serial in range(1, 300)}


def certain(*locks: int) -> dict[int, LockFacts]:
    return {lock: LockFacts() for lock in locks}


def test_an_edge_names_its_thread_and_both_call_sites() -> None:
    orders = [order([1], 2, 5, stack=7), order([2], 1, 6, stack=8)]
    (cycle,) = cycles(orders, LIVES, certain(1, 2))
    assert cycle.locks == (1, 2)
    first, second = cycle.edges
    assert (first.from_, first.to, first.tid, first.stack, first.site) == (1, 2, 1005, 7, 0x11)
    assert (second.from_, second.to, second.tid, second.stack) == (2, 1, 1006, 8)
    assert (cycle.confidence, cycle.why, cycle.classes) == (Confidence.HIGH, "", ())


def test_orders_of_different_lives_or_epochs_make_no_cycle() -> None:
    about = certain(1, 2)
    assert not cycles([order([1], 2, 5, generation=2), order([2], 1, 6)], LIVES, about)
    assert not cycles([order([1], 2, 5, epoch=2), order([2], 1, 6)], LIVES, about)


def test_a_cycle_needs_a_different_thread_for_each_edge() -> None:
    orders = [order([1], 2, 5, 6), order([2], 3, 5), order([3], 1, 6, 5, 7)]
    (cycle,) = cycles(orders, LIVES, certain(1, 2, 3))
    assert [edge.tid for edge in cycle.edges] == [1006, 1005, 1007]


def test_a_cycle_over_an_ambiguous_lock_is_counted_alone() -> None:
    orders = [order([1], 2, 5), order([2], 1, 6)]
    about = certain(1) | {2: LockFacts(has_own_address=False)}
    assert lock_order_cycles.find(orders, LIVES, about) == PotentialDeadlocks((), unproven=1)
    about[2] = LockFacts()
    assert lock_order_cycles.find(orders, LIVES, about).unproven == 0


def test_a_cycle_needs_the_lock_cookie_in_both_orders() -> None:
    about = certain(1) | {2: LockFacts(has_own_address=False)}
    for wanted, held in ((True, True), (True, False), (False, True)):
        first = replace(order([1], 2, 5), is_identified=wanted)
        second = order([2], 1, 6)
        second = replace(second, held=(replace(second.held[0], is_identified=held),))
        found = lock_order_cycles.find([first, second], LIVES, about)
        assert (len(found.cycles), found.unproven) == ((1, 0) if wanted and held else (0, 1))


def test_a_cycle_of_lock_classes_is_found_only_on_request() -> None:
    about = {n: LockFacts(class_name="left" if n < 100 else "right") for n in (1, 2, 101, 102)}
    orders = [order([1], 101, 5, stack=1), order([102], 2, 6, stack=2)]
    assert lock_order_cycles.find(orders, LIVES, about) == PotentialDeadlocks()
    (cycle,) = lock_order_cycles.find(orders, LIVES, about, of_classes=True).cycles
    assert (cycle.confidence, cycle.classes) == (Confidence.LOW, ("left", "right"))


def test_a_proven_cycle_is_not_counted_as_unproven() -> None:
    orders = [order([n], n + 100, 5, stack=1) for n in range(50)]
    orders += [order([n + 100], n, 6, stack=2) for n in range(50)]
    about = {
        n: LockFacts(has_own_address=n % 100 == 7, class_name="left" if n < 100 else "right")
        for n in range(150)
    }
    found = lock_order_cycles.find(orders, LIVES, about)
    assert [cycle.confidence for cycle in found.cycles] == [Confidence.HIGH]
    assert found.unproven == 0


def test_threads_without_records_lower_the_confidence() -> None:
    orders = [order([1], 2, 5), order([2], 1, 4000)]
    (cycle,) = cycles(orders, LIVES, certain(1, 2))
    assert cycle.confidence is Confidence.LOW
    assert "created" in cycle.why
    assert cycle.edges[1].tid == 0


def test_the_combination_with_the_highest_confidence_is_reported() -> None:
    cut = ObservedOrder(1, 2, 0, False, True, 9, (HeldLock(1, 0, False, 1),), ((5, 0),))
    orders = [cut, order([1, 3], 2, 5), order([2], 1, 6)]
    (cycle,) = cycles(orders, LIVES, certain(1, 2, 3))
    assert cycle.confidence is Confidence.HIGH
    (cycle,) = cycles([cut, orders[2]], LIVES, certain(1, 2, 3))
    assert cycle.confidence is Confidence.MEDIUM


def test_cycles_of_many_locks_by_the_same_code_are_reported_once() -> None:
    orders = [order([n], n + 100, 5, stack=1) for n in range(50)]
    orders += [order([n + 100], n, 6, stack=2) for n in range(50)]
    about = {n: LockFacts(class_name="left" if n < 100 else "right") for n in range(150)}
    (cycle,) = cycles(orders, LIVES, about)
    assert cycle.confidence is Confidence.HIGH


def test_a_long_ring_is_found_and_a_tangle_ends_in_time() -> None:
    ring = [order([n], (n + 1) % 200, n + 1, stack=n) for n in range(200)]
    (cycle,) = cycles(ring, LIVES, certain(*range(200)))
    assert len(cycle.edges) == 200
    tangle = [
        order([n], m, n % 7 + 1, stack=n * 60 + m) for n in range(60) for m in range(60) if n != m
    ]
    begun = time.process_time()
    assert cycles(tangle, LIVES, certain(*range(60)))
    assert time.process_time() - begun < 10, "far more than the search takes"


def test_many_orders_without_a_cycle_take_little_time() -> None:
    orders = [order([n % 100], 100 + n, n % 5 + 1, stack=n) for n in range(15_000)]
    begun = time.process_time()
    assert not cycles(orders, LIVES, certain(*range(15_100)))
    assert time.process_time() - begun < 10


def test_each_way_has_the_stacks_of_its_threads() -> None:
    orders = [
        order([1], 2, 5, stack=7),
        order([1], 2, 6, stack=8),
        order([1, 9], 2, 6, stack=8),
        order([2], 1, 7, stack=9),
    ]
    (cycle,) = cycles(orders, LIVES, certain(1, 2, 9))
    ways = [cycle.edges, *(way.edges for way in cycle.ways)]
    assert [[(edge.tid, edge.stack) for edge in way] for way in ways] == [
        [(1005, 7), (1007, 9)],
        [(1006, 8), (1007, 9)],
    ]
    assert not cycle.ways_left_out


def test_a_way_needs_threads_that_can_meet() -> None:
    orders = [order([1], 2, 5, stack=7), order([1], 2, 6, stack=8), order([2], 1, 6, stack=9)]
    (cycle,) = cycles(orders, LIVES, certain(1, 2))
    assert cycle.edges[0].stack == 7
    assert cycle.ways == ()


def test_the_way_with_the_highest_confidence_comes_first() -> None:
    orders = [order([1], 2, 4000, stack=7), order([1], 2, 5, stack=8), order([2], 1, 6, stack=9)]
    (cycle,) = cycles(orders, LIVES, certain(1, 2))
    assert (cycle.edges[0].stack, cycle.confidence) == (8, Confidence.HIGH)
    (way,) = cycle.ways
    assert (way.edges[0].stack, way.confidence) == (7, Confidence.LOW)
    assert "created" in way.why


def test_more_ways_than_are_kept_are_noted() -> None:
    orders = [order([1], 2, 5, stack=n) for n in range(100, 200)]
    (cycle,) = cycles([*orders, order([2], 1, 6, stack=9)], LIVES, certain(1, 2))
    assert len(cycle.ways) == 63
    assert cycle.ways_left_out


def test_the_same_ways_of_other_locks_of_a_class_are_reported_once() -> None:
    about = {n: LockFacts(class_name="left[]" if n < 20 else "right[]") for n in range(10, 30)}
    orders = [order([n], n + 10, 5, stack=n % 2) for n in range(10, 20)]
    orders += [order([n], n + 10, 5, stack=(n + 1) % 2) for n in range(10, 20)]
    orders += [order([n + 10], n, 6, stack=2) for n in range(10, 20)]
    (cycle,) = cycles(orders, LIVES, about)
    assert len(cycle.ways) == 1


def test_a_search_that_ends_at_a_limit_says_so() -> None:
    few = [order([1], 2, 5), order([2], 1, 6)]
    assert not lock_order_cycles.find(few, LIVES, certain(1, 2)).is_cut
    many = [order([n], n + 100, 5, stack=n) for n in range(50)]
    many += [order([n + 100], n, 6, stack=n) for n in range(50)]
    found = lock_order_cycles.find(many, LIVES, certain(*range(150)))
    assert len(found.cycles) == 32
    assert found.is_cut
    tangle = [order([n], m, 5, stack=1) for n in range(60) for m in range(60) if n != m]
    assert lock_order_cycles.find(tangle, LIVES, certain(*range(60))).is_cut


def test_threads_that_the_steps_do_not_suffice_to_compare_cut_the_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = [order([1], 2, 5, stack=1), order([2], 1, 6, stack=2)]
    found = lock_order_cycles.find(both, LIVES, certain(1, 2))
    assert (len(found.cycles), found.is_cut) == (1, False)
    monkeypatch.setattr(happens_before, "MAX_STEPS", 0)
    found = lock_order_cycles.find(both, LIVES, certain(1, 2))
    assert (len(found.cycles), found.is_cut) == (0, True)
