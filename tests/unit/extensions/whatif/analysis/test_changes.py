"""Changes of a simulated program."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders.simulated import ROUND, holding, program, sleep

from locktop.collector.extensions.whatif.analysis.changes import changed, is_dependent
from locktop.collector.extensions.whatif.analysis.predict import SpanReplays, predict
from locktop.collector.extensions.whatif.analysis.simulated_program import (
    Do,
    LockModel,
    LockType,
    Operation,
    Program,
)
from locktop.collector.extensions.whatif.model import Change, ChangeKind
from locktop.collector.extensions.whatif.simulator import Simulator

CROWD = program((16, (sleep(100), *holding(0, sleep(100)), ROUND)))


def gain(kind: ChangeKind, amount: float, group: str = "") -> float:
    change = Change(kind=kind, amount=amount, lock=0 if group else 65, group=group)
    found = predict([SpanReplays(CROWD, Simulator)], change)
    assert found is not None
    return found.ratio


def test_half_the_hold_of_a_saturated_lock_doubles_the_throughput() -> None:
    assert gain(ChangeKind.HOLD, 0.5) == pytest.approx(2.0, rel=0.02)


def test_time_without_the_lock_is_the_same() -> None:
    after = changed(CROWD, Change(kind=ChangeKind.HOLD, amount=0.5, lock=65))
    amounts = [one.amount for one in after.threads[0].operations if one.do == Do.SLEEP]
    assert amounts == [100_000, 50_000]


def test_a_split_lock_is_taken_in_parts() -> None:
    # 16 threads choose one of 16 locks: some meet, so less than the bound of 80,000.
    assert 5.0 < gain(ChangeKind.SPLIT, 16) < 8.0


def test_each_release_is_of_the_lock_that_was_taken() -> None:
    after = changed(CROWD, Change(kind=ChangeKind.SPLIT, amount=4, lock=65))
    for thread in after.threads:
        taken = [one.lock for one in thread.operations if one.do == Do.TAKE]
        assert taken == [one.lock for one in thread.operations if one.do == Do.RELEASE]
    assert len(after.locks) == 4


def test_readers_of_an_rwlock_do_not_wait() -> None:
    assert gain(ChangeKind.RW, 1.0) == pytest.approx(8.0, rel=0.02)
    assert gain(ChangeKind.RW, 0.0) == pytest.approx(1.0, rel=0.05)


def test_fewer_threads_are_enough_for_a_saturated_lock() -> None:
    assert gain(ChangeKind.THREADS, 4, "group0") == pytest.approx(1.0, rel=0.02)
    assert gain(ChangeKind.THREADS, 1, "group0") == pytest.approx(0.5, rel=0.02)


def test_threads_with_another_role_stay_as_they_are() -> None:
    pool = program((4, (sleep(100), ROUND)), (1, (sleep(1000), ROUND)))
    first, *rest = (replace(thread, group="pool") for thread in reversed(pool.threads))
    mixed = replace(pool, threads=(replace(first, role=2), *rest))
    after = changed(mixed, Change(kind=ChangeKind.THREADS, amount=2, group="pool"))
    assert sorted(thread.role for thread in after.threads) == [1, 1, 2]


def pair_with_signals(rounds: int) -> Program:
    """A thread that wakes thread 101 once in so many rounds, which are those of thread 101."""
    units = (LockModel(66, LockType.UNITS, 0, waiter=101),)
    waker = (*(sleep(100), ROUND) * rounds, Operation(Do.POST, 0, 1))
    woken = (Operation(Do.WAIT, 0), *(sleep(10), ROUND) * rounds)
    return program((1, waker), (1, woken), locks=units)


def test_threads_that_end_each_others_waits_keep_their_number() -> None:
    assert is_dependent(pair_with_signals(1), "group0")
    assert is_dependent(pair_with_signals(1), "group1")
    assert not is_dependent(pair_with_signals(100), "group1")
    assert not is_dependent(CROWD, "group0")


def test_rare_signals_to_changed_threads_are_left_out() -> None:
    after = changed(
        pair_with_signals(100), Change(kind=ChangeKind.THREADS, amount=2, group="group1")
    )
    assert not [one for thread in after.threads for one in thread.operations if one.do == Do.POST]
    rates = Simulator(after).run(0, 10**9).rounds
    assert rates == [pytest.approx(10_000, rel=0.01), *[pytest.approx(100_000, rel=0.01)] * 2]


def test_a_barrier_meets_as_many_threads_as_there_are() -> None:
    barrier = (LockModel(67, LockType.BARRIER, 3),)
    team = program((3, (sleep(100), Operation(Do.MEET, 0), ROUND)), locks=barrier)
    after = changed(team, Change(kind=ChangeKind.THREADS, amount=5, group="group0"))
    assert after.locks[0].units == 5
    assert sum(Simulator(after).run(0, 10**9).rounds) == pytest.approx(50_000, rel=0.01)


def test_a_lock_that_is_not_there_changes_nothing() -> None:
    assert changed(CROWD, Change(kind=ChangeKind.HOLD, amount=0.5, lock=1)) is CROWD


def test_the_interval_has_the_prediction() -> None:
    rates = SpanReplays(CROWD, Simulator).base.rounds_per_s
    recorded = SpanReplays(replace(CROWD, rounds_per_s=rates), Simulator)
    found = predict([recorded], Change(kind=ChangeKind.HOLD, amount=0.5, lock=65))
    assert found.low < found.ratio <= found.high
    assert found.bound == pytest.approx(2.0, rel=0.02)


def test_a_copy_of_a_thread_has_locks_of_its_own() -> None:
    """A lock that only one thread uses is not fought over by the copies of this thread."""
    locks = (LockModel(65, LockType.MUTEX), LockModel(66, LockType.MUTEX))
    alone = program((1, (sleep(100), *holding(1, sleep(900)), ROUND)), locks=locks)
    after = changed(alone, Change(kind=ChangeKind.THREADS, amount=4, group="group0"))
    assert len(after.locks) == 5
    assert sum(Simulator(after).run(0, 10**9).rounds) == pytest.approx(4000, rel=0.01)


def test_a_change_that_stops_threads_has_no_prediction() -> None:
    waiter = (Operation(Do.WAIT, 0), sleep(100), ROUND)
    locks = (LockModel(65, LockType.UNITS, 0),)
    queue = program((1, (sleep(100), Operation(Do.POST, 0, 1))), (4, waiter), locks=locks)
    assert predict([SpanReplays(queue, Simulator)], Change(ChangeKind.CPUS, 1)) is not None
    end = replace(queue, threads=queue.threads[1:])
    replays = SpanReplays(queue, Simulator)
    replays.program = end
    assert predict([replays], Change(ChangeKind.CPUS, 1)) is None
