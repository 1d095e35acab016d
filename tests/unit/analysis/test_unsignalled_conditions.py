"""Long waits for conditions that no signal has reached, and waits that only look like these."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.analysis import contention_patterns, unsignalled_conditions
from locktop.collector.analysis.contention_findings import NoSignal
from locktop.collector.model import (
    Deadlock,
    DeadlockEdge,
    Kind,
    Lock,
    Snapshot,
    Thread,
    ThreadState,
    WaitStack,
)
from locktop.collector.render.words.patterns import evidence

LIMIT_S = unsignalled_conditions.MIN_WAIT_S


def waiter(tid: int, lock: int, wait_s: float, stack: int = 1) -> Thread:
    wait = records.wait(lock, Kind.COND, wait_s, stack=stack)
    return records.thread(tid, "w", ThreadState.IDLE, waiting_for=wait)


def condition(number: int, *ended: int, **fields: object) -> Lock:
    """A condition; ``ended``: the stacks of waits that have ended, beside those that go on."""
    stacks = (*(WaitStack(stack, 1, 1.0) for stack in ended), WaitStack(1, 0, 9.0))
    return records.lock(number, f"c{number}", Kind.COND, wait_stacks=stacks, **fields)


def scan(threads: tuple[Thread, ...], *locks: Lock) -> Snapshot:
    why = {thread.tid: "condition" for thread in threads}
    return records.snapshot(threads, locks, why=why)


def one() -> Snapshot:
    return scan((waiter(11, 1, LIMIT_S), waiter(12, 1, LIMIT_S - 0.1)), condition(1))


def found(snapshot: Snapshot) -> list[NoSignal]:
    patterns = contention_patterns.find(snapshot)
    return [pattern for pattern in patterns if isinstance(pattern, NoSignal)]


def with_wait(snapshot: Snapshot, **fields: object) -> Snapshot:
    first, *others = snapshot.threads
    changed = replace(first, waiting_for=replace(first.waiting_for, **fields))
    return replace(snapshot, threads=(changed, *others))


def with_lock(snapshot: Snapshot, **fields: object) -> Snapshot:
    return replace(snapshot, locks=(replace(snapshot.locks[0], **fields),))


def with_another(snapshot: Snapshot, another: Lock) -> Snapshot:
    return replace(snapshot, locks=(*snapshot.locks, another))


def test_only_the_long_waits_count() -> None:
    assert found(one()) == [
        NoSignal(lock=1, tids=(11,), waiters=1, longest_wait_s=LIMIT_S, signals=0, conditions=1)
    ]


def test_signals_before_the_waits_are_in_the_evidence() -> None:
    (lost,) = found(with_lock(one(), signals=2, unheard=2))
    assert evidence(lost) == (
        "1 thread waits, for up to 10.0 s; no signal came meanwhile; 2 signals came before"
    )


def test_conditions_at_one_source_location_are_one_finding() -> None:
    threads = (waiter(11, 1, LIMIT_S), waiter(12, 2, LIMIT_S + 2), waiter(13, 3, LIMIT_S, stack=2))
    locks = (condition(1), condition(2, signals=1, unheard=1), condition(3))
    pair, single = found(scan(threads, *locks))
    assert (pair.lock, pair.tids, pair.conditions) == (2, (11, 12), 2), "the longest wait first"
    assert (pair.longest_wait_s, pair.signals) == (LIMIT_S + 2, 1)
    assert (single.lock, single.tids, single.conditions) == (3, (13,), 1)
    assert evidence(pair).startswith("2 threads wait for it and 1 other condition, for up to 12.0")


NEAR_MISSES: dict[str, Callable[[Snapshot], Snapshot]] = {
    "not for long": lambda s: with_wait(s, duration_s=LIMIT_S - 0.01),
    "a time limit": lambda s: with_wait(s, timed=True),
    "another process may signal": lambda s: with_wait(s, pshared=True),
    "no name yet": lambda s: replace(s, stacks={1: (replace(s.stacks[1][0], function=""),)}),
    "no frame": lambda s: replace(s, stacks={}),
    "no stack": lambda s: with_wait(s, stack=0),
    "contended by a rule": lambda s: with_wait(s, idle=False),
    "a signal came": lambda s: with_lock(s, signals=2, unheard=1),
    "signals not measured": lambda s: with_lock(s, signals=None),
    "lost signals not measured": lambda s: with_lock(s, unheard=None),
    "a wait has ended": lambda s: with_lock(s, acquisitions=1),
    "a semaphore": lambda s: with_lock(s, kind=Kind.SEM),
    "waited here for another": lambda s: with_another(s, condition(2, 1)),
    "waited here, and has the mutex": lambda s: with_another(s, condition(2, acquisitions=1)),
    "an idle rule of a pool": lambda s: replace(s, why={11: "pool"}),
    "no idle rule": lambda s: replace(s, why={}),
    "watched later": lambda s: replace(s, complete=False),
    "does not sleep": lambda s: replace(
        s, threads=(replace(s.threads[0], state=ThreadState.RUNNING),)
    ),
    "ended": lambda s: replace(s, threads=(replace(s.threads[0], alive=False),)),
    "deadlocked": lambda s: replace(
        s, deadlocks=(Deadlock(False, 1.0, (DeadlockEdge(11, 1, 12, 0, 0),)),)
    ),
}


@pytest.mark.parametrize("change", NEAR_MISSES.values(), ids=NEAR_MISSES)
def test_a_near_miss_is_no_finding(change: Callable[[Snapshot], Snapshot]) -> None:
    assert found(one())
    assert found(change(one())) == []


def test_waits_that_ended_elsewhere_say_nothing() -> None:
    assert found(with_another(one(), condition(2, 2)))
    semaphore = replace(condition(2, 1), kind=Kind.SEM)
    assert found(with_another(one(), semaphore))
