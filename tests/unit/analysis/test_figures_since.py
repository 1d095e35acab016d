"""The figures since an earlier scan: what is new, gone, made again, or used again."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.analysis.figures_since import since
from locktop.collector.model import Blame, Kind, Lock, PythonShare, Snapshot, Thread, WaitStack

BEFORE = records.classified(scenarios.normal)()


def grown(snapshot: Snapshot, lock: Lock, thread: Thread) -> Snapshot:
    """A later scan with another first lock and another first thread."""
    return replace(
        snapshot,
        duration_s=snapshot.duration_s + 10.0,
        locks=(lock, *snapshot.locks[1:]),
        threads=(thread, *snapshot.threads[1:]),
    )


def lock_of(snapshot: Snapshot, number: int) -> Lock:
    return next(lock for lock in snapshot.locks if lock.id == number)


LOCK = BEFORE.locks[0]
THREAD = BEFORE.threads[0]


def test_without_a_change_all_counters_are_zero() -> None:
    found = since(BEFORE, BEFORE)
    assert (found.duration_s, found.lost_events) == (0.0, 0)
    for lock in found.locks:
        assert (lock.contended, lock.wait_s, lock.wait_max_s, lock.idle_s) == (0, 0.0, 0.0, 0.0)
        assert (lock.acquisitions, lock.hold_s, lock.hold_timed) == (0, 0.0, 0)
        assert (lock.wait_stacks, lock.blame) == ((), ())
    for thread in found.threads:
        assert (thread.cpu_s, thread.acquisitions, thread.contended) == (0.0, 0, 0)
        assert not any(thread.wait_s.values())


def test_the_growth_of_a_lock_is_what_was_added() -> None:
    stack, blame = LOCK.wait_stacks[0], LOCK.blame[0]
    assert LOCK.acquisitions is not None
    assert LOCK.hold_s is not None
    later = replace(
        LOCK,
        acquisitions=LOCK.acquisitions + 100,
        contended=LOCK.contended + 7,
        wait_s=LOCK.wait_s + 2.0,
        wait_max_s=LOCK.wait_max_s + 0.5,
        hold_s=LOCK.hold_s + 4.0,
        hold_timed=LOCK.hold_timed + 3,
        wait_stacks=(
            replace(stack, count=stack.count + 6, wait_s=stack.wait_s + 1.5),
            *LOCK.wait_stacks[1:],
            WaitStack(6, 1, 0.5),
        ),
        blame=(replace(blame, wait_s=blame.wait_s + 1.0), *LOCK.blame[1:], Blame(9, 0x9, 0.25)),
    )
    found = lock_of(since(grown(BEFORE, later, THREAD), BEFORE), LOCK.id)
    assert (found.acquisitions, found.contended, found.hold_timed) == (100, 7, 3)
    assert (found.wait_s, found.hold_s) == pytest.approx((2.0, 4.0))
    assert (found.wait_max_s, found.wait_max_is_bound) == (later.wait_max_s, False)
    assert [(one.stack, one.count) for one in found.wait_stacks] == [(stack.stack, 6), (6, 1)]
    assert [one.wait_s for one in found.wait_stacks] == pytest.approx([1.5, 0.5])
    assert [one.tid for one in found.blame] == [blame.tid, 9]
    assert [one.wait_s for one in found.blame] == pytest.approx([1.0, 0.25])


def test_a_histogram_has_what_was_added() -> None:
    early, late = records.histogram(500, 700), records.histogram(500, 500, 700, 90_000)
    before = replace(LOCK, wait_histogram=early, hold_histogram=early)
    later = replace(LOCK, wait_histogram=late, hold_histogram=early)
    threads = [replace(THREAD, wait_histogram=one) for one in (early, late)]
    baseline = grown(BEFORE, before, threads[0])
    seen = since(grown(BEFORE, later, threads[1]), baseline)
    found = lock_of(seen, LOCK.id)
    assert found.wait_histogram == records.histogram(500, 90_000)
    assert found.hold_histogram is None
    thread = next(one for one in seen.threads if one.tid == THREAD.tid)
    assert thread.wait_histogram == found.wait_histogram


def test_a_maximum_of_before_is_bounded_by_the_sum_of_the_session() -> None:
    later = replace(LOCK, wait_s=LOCK.wait_s + 0.001)
    found = lock_of(since(grown(BEFORE, later, THREAD), BEFORE), LOCK.id)
    assert found.wait_max_s == pytest.approx(0.001)
    assert found.wait_max_is_bound
    same = lock_of(since(grown(BEFORE, LOCK, THREAD), BEFORE), LOCK.id)
    assert (same.wait_max_s, same.wait_max_is_bound) == (0.0, False), "there was no wait"
    assert found.hold_max_s == 0.0


def test_a_maximum_of_samples_bounds_no_later_wait() -> None:
    """Samples see a part of each wait, so a later wait may be longer than the longest of before."""
    sampled = replace(LOCK, wait_max_is_lower_bound=True)
    later = replace(sampled, wait_s=LOCK.wait_s + 60.0)
    before = grown(BEFORE, sampled, THREAD)
    lock = lock_of(since(grown(BEFORE, later, THREAD), before), LOCK.id)
    assert (lock.wait_max_s, lock.wait_max_is_bound) == (0.0, False)


def test_a_maximum_that_differs_by_the_rate_of_the_clock_is_of_before() -> None:
    assert LOCK.hold_max_s is not None
    later = replace(
        LOCK,
        wait_s=LOCK.wait_s + 0.001,
        wait_max_s=LOCK.wait_max_s * (1 + 1e-5),
        hold_max_s=LOCK.hold_max_s * (1 + 1e-5),
    )
    found = lock_of(since(grown(BEFORE, later, THREAD), BEFORE), LOCK.id)
    assert (found.wait_max_s, found.wait_max_is_bound) == (pytest.approx(0.001), True)
    assert found.hold_max_s == 0.0


def test_the_locks_are_sorted_by_the_waits_of_the_session() -> None:
    second = BEFORE.locks[1]
    later = replace(
        BEFORE, locks=(LOCK, replace(second, wait_s=second.wait_s + 1.0), *BEFORE.locks[2:])
    )
    assert second.wait_s < LOCK.wait_s
    assert since(later, BEFORE).locks[0].id == second.id


@pytest.mark.parametrize(
    "change",
    [
        {"id": 999},  # was made later
        {"address": LOCK.address + 64},
        {"kind": Kind.SPIN},
        {"contended": 1},  # fewer than before
        {"acquisitions": 1},
    ],
)
def test_a_new_lock_keeps_all_of_its_figures(change: dict[str, object]) -> None:
    later = replace(LOCK, **change)
    assert since(grown(BEFORE, later, THREAD), BEFORE).locks.count(later) == 1


def test_a_lock_that_was_initialised_again_goes_on_counting() -> None:
    """The library counts on at the same address."""
    later = replace(LOCK, generation=LOCK.generation + 1, contended=LOCK.contended + 1)
    assert lock_of(since(grown(BEFORE, later, THREAD), BEFORE), LOCK.id).contended == 1


def test_a_lock_that_is_gone_is_not_there() -> None:
    later = replace(BEFORE, locks=BEFORE.locks[1:])
    assert LOCK.id not in {lock.id for lock in since(later, BEFORE).locks}


def test_the_growth_of_a_thread_is_what_was_added() -> None:
    assert THREAD.acquisitions is not None
    later = replace(
        THREAD,
        cpu_s=THREAD.cpu_s + 0.5,
        acquisitions=THREAD.acquisitions + 9,
        wait_s={**THREAD.wait_s, Kind.MUTEX: 0.25},
    )
    found = since(grown(BEFORE, LOCK, later), BEFORE).threads[0]
    assert (found.cpu_s, found.acquisitions) == (pytest.approx(0.5), 9)
    assert found.wait_s[Kind.MUTEX] == 0.25
    assert found.wait_s[Kind.JOIN] == 0.0


def test_a_thread_with_an_id_that_was_used_again_keeps_all_of_its_figures() -> None:
    before = replace(BEFORE, threads=(replace(THREAD, alive=False), *BEFORE.threads[1:]))
    assert since(BEFORE, before).threads[0] == THREAD
    busier = replace(BEFORE, threads=(replace(THREAD, cpu_s=1e6), *BEFORE.threads[1:]))
    assert since(BEFORE, busier).threads[0] == THREAD


def test_a_thread_that_ended_meanwhile_has_its_last_figures() -> None:
    later = replace(THREAD, alive=False, cpu_s=THREAD.cpu_s + 1.0)
    assert since(grown(BEFORE, LOCK, later), BEFORE).threads[0].cpu_s == pytest.approx(1.0)


def test_what_samples_do_not_measure_stays_unknown() -> None:
    sampled = records.sampled(BEFORE)
    found = since(sampled, sampled)
    assert all(lock.acquisitions is None and lock.hold_s is None for lock in found.locks)
    assert all(thread.acquisitions is None for thread in found.threads)


def test_the_samples_of_python_functions_are_those_that_were_added() -> None:
    stack = LOCK.wait_stacks[0]
    before = replace(stack, python=(PythonShare(91, 8, 4), PythonShare(92, 3, 3)))
    now = replace(
        stack,
        count=stack.count + 9,
        python=(PythonShare(91, 9, 4), PythonShare(92, 7, 5), PythonShare(93, 1, 1)),
    )
    earlier = grown(BEFORE, replace(LOCK, wait_stacks=(before,)), THREAD)
    later = grown(BEFORE, replace(LOCK, wait_stacks=(now,)), THREAD)
    (found,) = lock_of(since(later, earlier), LOCK.id).wait_stacks
    assert found.python == (PythonShare(92, 4, 2), PythonShare(91, 1, 0), PythonShare(93, 1, 1))
