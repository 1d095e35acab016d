"""The samples of past waits, and what counts as read."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace
from unit.builders import records, scenarios
from unit.builders.python_stacks import runs

from locktop.collector.model import Draft, PythonShare, WaitStack
from locktop.collector.sources.probes.python_shares import MetWait, PythonShares
from locktop.collector.symbols.python.frame_reader import Runs

LOCK, STACK, OTHER_STACK = 1, 5, 6
PRICE, REFUND = runs("price"), runs("refund")


def wait(tid: int, seq: int = 1, stack: int = STACK, sleeps: int = 9) -> MetWait:
    return MetWait((1, seq), LOCK, stack, tid, sleeps)


def draft(*stacks: int, lock: int = LOCK) -> Draft:
    made = records.lock(lock, "g_lock")
    waits = tuple(WaitStack(stack, 10, 4.0) for stack in stacks)
    return replace(scenarios.deadlock(), locks=(replace(made, wait_stacks=waits),)).draft()


def merged(native: int, functions: Runs) -> int:
    return {PRICE: 100, REFUND: 200}.get(functions, 0) + native


@pytest.fixture
def shares() -> PythonShares:
    return PythonShares()


def take(
    shares: PythonShares, answer: Mapping[int, Runs], *, slept: bool = True, seq: int = 1
) -> dict[tuple[int, tuple[int, int]], Runs]:
    """Take a sample of two waits."""
    shares.begin({7: wait(7, seq), 8: wait(8, seq)})
    return shares.end(answer, {7: 9, 8: 9} if slept else {7: 9, 8: 10}, {})


def test_a_wait_has_its_functions_only_if_its_thread_slept_until_after_the_reading(
    shares: PythonShares,
) -> None:
    assert take(shares, {7: PRICE, 8: REFUND}, slept=False) == {(7, (1, 1)): PRICE}
    annotated = draft(STACK)
    assert shares.annotate(annotated, merged) == {105}
    (waited,) = annotated.locks[0].wait_stacks
    assert waited.python == (PythonShare(STACK, 1, 1), PythonShare(105, 1, 1))
    assert (waited.count, waited.wait_s) == (10, 4.0), "the counters stay exact"


def test_a_wait_that_was_not_known_to_sleep_is_not_read(shares: PythonShares) -> None:
    shares.begin({7: wait(7, sleeps=0)})
    assert shares.end({7: PRICE}, {7: 0}, {}) == {}


def test_a_long_wait_counts_in_each_sample_and_is_one_wait(shares: PythonShares) -> None:
    take(shares, {7: PRICE, 8: REFUND})
    for _ in range(2):
        shares.begin({7: wait(7)})
        shares.end({}, {}, {(7, (1, 1)): PRICE})
    take(shares, {7: PRICE, 8: REFUND}, seq=2)
    annotated = draft(STACK)
    shares.annotate(annotated, merged)
    assert annotated.locks[0].wait_stacks[0].python == (
        PythonShare(105, 4, 2), PythonShare(205, 2, 2),
    )  # fmt: skip


def test_functions_of_one_native_stack_never_belong_to_another(shares: PythonShares) -> None:
    shares.begin({7: wait(7), 8: wait(8, stack=OTHER_STACK)})
    shares.end({7: PRICE, 8: REFUND}, {7: 9, 8: 9}, {})
    annotated = draft(STACK, OTHER_STACK)
    shares.annotate(annotated, merged)
    assert [one.python for one in annotated.locks[0].wait_stacks] == [
        (PythonShare(105, 1, 1),), (PythonShare(206, 1, 1),),
    ]  # fmt: skip


def test_functions_that_do_not_fit_the_native_stack_count_as_not_read(shares: PythonShares) -> None:
    take(shares, {7: PRICE, 8: runs("other")})
    annotated = draft(STACK)
    shares.annotate(annotated, lambda native, one: merged(native, one) if one == PRICE else 0)
    assert annotated.locks[0].wait_stacks[0].python == (
        PythonShare(STACK, 1, 1), PythonShare(105, 1, 1),
    )  # fmt: skip


def test_a_sample_without_an_answer_is_dropped(shares: PythonShares) -> None:
    shares.begin({7: wait(7)})
    take(shares, {7: PRICE, 8: PRICE})
    assert shares.taken == 1
    assert shares.end({7: PRICE}, {7: 9}, {}) == {}


def test_waits_that_are_never_read_are_not_worth_more_readings(shares: PythonShares) -> None:
    for number in range(15):
        assert shares.is_worth(wait(7))
        take(shares, {}, seq=number)
    assert not shares.is_worth(wait(7))
    assert shares.is_worth(wait(7, stack=OTHER_STACK))


def test_the_shares_are_known_well_after_many_samples(shares: PythonShares) -> None:
    for number in range(100):
        assert not shares.are_known_well
        take(shares, {7: PRICE, 8: REFUND}, seq=number)
    assert shares.are_known_well


def test_the_memory_is_bounded(shares: PythonShares) -> None:
    for number in range(50):
        take(shares, {7: runs(f"f{number}"), 8: PRICE}, seq=number)
    annotated = draft(STACK)
    numbers: dict[Runs, int] = {}
    shares.annotate(annotated, lambda _, one: 100 + numbers.setdefault(one, len(numbers)))
    found = annotated.locks[0].wait_stacks[0].python
    assert len(found) == 33
    assert sum(one.samples for one in found) == 100, "the others count as not read"
    for number in range(2000):
        shares.begin({7: wait(7, stack=1000 + number)})
        shares.end({7: PRICE}, {7: 9}, {})
    annotated = draft(STACK, 2999)
    shares.annotate(annotated, merged)
    assert [bool(one.python) for one in annotated.locks[0].wait_stacks] == [False, True]


def test_a_lock_that_is_gone_is_forgotten(shares: PythonShares) -> None:
    take(shares, {7: PRICE, 8: REFUND})
    assert shares.annotate(draft(STACK, lock=2), merged) == set()
    assert shares.annotate(draft(STACK), merged) == set()
