"""Classes of locks and groups of threads: sums, None where a figure was not measured."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import records

from locktop.collector.model import (
    WAITS_ALONE,
    Kind,
    LockClass,
    LockRates,
    ThreadGroup,
    ThreadState,
    TimeSplit,
)

#: Figures of a lock that samples do not show.
NOT_SAMPLED = ("acquisitions", "trylock_failed", "signals", "unheard", "hold_s", "hold_max_s")


def pair() -> LockClass:
    first = records.lock(
        1, "m", acquisitions=3, contended=2, trylock_failed=1, signals=5, unheard=4, wait_s=1.0,
        wait_max_s=0.5, hold_s=2.0, hold_timed=3, hold_max_s=1.5, holders=(7,), waiters=(8, 9),
        rates=LockRates(1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
    )  # fmt: skip
    second = replace(first, id=2, wait_max_s=0.75, holders=(7, 6), waiters=(9,), destroyed=True)
    return LockClass("m", Kind.MUTEX, (1, 2), (first, second))


def test_the_figures_of_a_class_are_sums() -> None:
    found = pair()
    assert [getattr(found, name) for name in NOT_SAMPLED] == [6, 2, 10, 8, 4.0, 1.5]
    assert (found.contended, found.hold_timed, found.destroyed) == (4, 6, 1)
    assert (found.wait_s, found.wait_max_s, found.counted_wait_s) == (2.0, 0.75, 2.0)
    assert (found.holders, found.waiters) == ((7, 6), (8, 9))
    assert found.rates == LockRates(2.0, 4.0, 6.0, 8.0, 10.0, 12.0)


def test_a_sum_is_none_if_one_lock_has_none() -> None:
    for name in NOT_SAMPLED:
        found = pair()
        first, second = found.members
        found = replace(found, members=(first, replace(second, **{name: None})))
        assert {one for one in NOT_SAMPLED if getattr(found, one) is None} == {name}
    rates = replace(first.rates, hold=None)
    found = replace(found, members=(replace(first, rates=rates), second))
    assert found.rates == LockRates(2.0, 4.0, 6.0, None, 10.0, 12.0)


def test_a_class_of_sampled_locks_has_waits_alone() -> None:
    found = pair()
    sampled = records.sampled(records.snapshot((), found.members)).locks
    found = replace(found, members=sampled)
    assert [getattr(found, name) for name in NOT_SAMPLED] == [None] * len(NOT_SAMPLED)
    assert (found.contended, found.hold_timed, found.wait_s) == (4, 0, 2.0)
    assert found.rates == replace(WAITS_ALONE, wait=6.0)


def test_a_class_is_idle_if_every_lock_is() -> None:
    locks = [records.lock(id_, "c", Kind.COND, wait_s=2.0) for id_ in (1, 2)]
    found = LockClass("c", Kind.COND, (1, 2), tuple(locks))
    assert (found.idle, found.idle_s, found.counted_wait_s) == (True, 4.0, 4.0)
    found = replace(found, members=(locks[0], records.some_idle(locks[1], 0.5)))
    assert (found.idle, found.idle_s, found.counted_wait_s) == (False, 2.5, 1.5)


def test_the_figures_of_a_group() -> None:
    made = TimeSplit(cpu=1.0)
    threads = tuple(
        records.thread(
            tid, f"t{tid}", ThreadState.WAITING, acquisitions=tid, contended=1, time=made,
            waiting_for=records.wait(1, Kind.MUTEX, 9.0 - tid),
        )
        for tid in (1, 2, 3)
    )  # fmt: skip
    group = ThreadGroup("key", threads, "t#", 1, "m")
    assert (group.acquisitions, group.contended, group.holds) == (6, 3, 0)
    assert (group.first, group.wait, group.tids) == (threads[0], threads[0].waiting_for, (1, 2, 3))
    assert (group.time, group.states) == (made, {ThreadState.WAITING})
    one_sampled = replace(threads[1], acquisitions=None, contended=None)
    group = replace(group, threads=(threads[0], one_sampled))
    assert (group.acquisitions, group.contended) == (None, None)
