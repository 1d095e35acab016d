"""Semaphores that are used as locks, from scan to scan: baselines, rules and lost counts."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.analysis.semaphore_ownership import SemaphoreLocks, annotate_holders
from locktop.collector.model import Kind, Lock, LockUse, Snapshot, Thread, ThreadState

SEM = 9


def sem(**fields: Any) -> Lock:
    """Return a semaphore with one unit, of which one thread has the unit."""
    values = {"wait_s": 5.0, "waiters": (1,), "signals": 100, "acquisitions": 101,
              "first_value": 1} | fields  # fmt: skip
    return replace(records.lock(SEM, "s", Kind.SEM), **values)  # type: ignore[arg-type]


def thread(tid: int, acquisitions: int, signals: int, **fields: Any) -> Thread:
    made = records.thread(
        tid, "t", ThreadState.RUNNING, uses=(LockUse(SEM, acquisitions, signals),)
    )
    return replace(made, **fields)


def scan(lock: Lock, *threads: Thread) -> Snapshot:
    return records.snapshot(threads, (lock,))


def is_lock(lock: Lock, *threads: Thread) -> bool:
    return SEM in SemaphoreLocks().observe(scan(lock, *threads))


@pytest.mark.parametrize(
    ("lock", "expected"),
    [
        (sem(), True),
        (sem(wait_s=0.0), False),
        (replace(sem(), kind=Kind.COND), False),
        (sem(first_value=0), False),
        (sem(first_value=None), False),
        (sem(first_value=0, used_as_lock=True), True),
        (sem(signals=0, acquisitions=1), False),
        (sem(signals=1, acquisitions=2), True),
        (sem(acquisitions=102), False),
        (sem(acquisitions=99), True),
        (sem(first_value=2, acquisitions=102), True),
        (sem(acquisitions=None), False),
        (sem(signals=None), False),
        (sem(foreign_releases=True), False),
    ],
)
def test_a_semaphore_at_a_new_address_is_a_lock_by_its_sums(lock: Lock, expected: bool) -> None:
    assert is_lock(lock) is expected


def test_a_lock_stays_a_lock_while_its_sums_are_a_little_wrong() -> None:
    locks = SemaphoreLocks()
    assert locks.observe(scan(sem()))
    assert locks.observe(scan(sem(acquisitions=103)))
    assert locks.observe(scan(sem(acquisitions=None)))
    assert not locks.observe(scan(sem(foreign_releases=True)))
    assert not locks.observe(scan(sem(acquisitions=103)))


def test_another_semaphore_at_the_address_begins_anew() -> None:
    locks = SemaphoreLocks()
    assert locks.observe(scan(sem()))
    assert not locks.observe(scan(sem(generation=1)))
    assert not locks.observe(scan(sem(generation=1, acquisitions=None)))


# ---- the changes since the first scan, at a used address ----


class Used:
    """Scans of a semaphore at a used address; one thread has posted before."""

    def __init__(self, first_value: int = 1) -> None:
        self.locks = SemaphoreLocks()
        self.first_value = first_value

    def scan(self, *counts: tuple[int, int], signals: int = 100, generation: int = 1,
             **fields: Any) -> bool:  # fmt: skip
        lock = sem(signals=signals, generation=generation, first_value=self.first_value, **fields)
        threads = [thread(tid, *one) for tid, one in enumerate(counts, 1)]
        return SEM in self.locks.observe(scan(lock, *threads))


def test_enough_posts_by_its_getters_make_a_semaphore_a_lock() -> None:
    used = Used()
    assert not used.scan((10, 10))
    assert used.locks.needs_another_scan
    assert not used.scan((13, 13), signals=103)
    assert not used.locks.needs_another_scan
    assert used.scan((14, 14), signals=104)
    more = Used(first_value=2)
    more.scan((10, 10))
    assert not more.scan((14, 14), signals=104)
    assert more.scan((15, 15), signals=105)


def test_posts_of_several_threads_add_up() -> None:
    used = Used()
    used.scan((10, 10), (5, 5))
    assert used.scan((12, 12), (7, 7), signals=104)


def test_more_posts_than_acquisitions_are_signals() -> None:
    used = Used()
    used.scan((10, 10), (5, 5))
    assert used.scan((14, 15), (5, 5), signals=105)  # the thread had a unit before
    assert not used.scan((14, 16), (5, 5), signals=106)
    assert not Used(2).scan((10, 10))
    two = Used(2)
    two.scan((10, 10), (5, 5))
    assert two.scan((13, 14), (8, 9), signals=108)
    assert not two.scan((13, 15), (8, 9), signals=109)


def test_posts_by_ended_threads_prove_nothing() -> None:
    used = Used()
    used.scan((10, 10))
    assert not used.scan((14, 14), signals=105)
    assert used.scan((14, 14), signals=104)
    assert used.scan((14, 14), signals=105)  # known by now


def test_a_new_thread_with_an_old_tid_begins_anew() -> None:
    used = Used()
    used.scan((10, 10))
    assert not used.scan((9, 10), signals=104)
    assert not used.scan((12, 13), signals=107)
    assert used.scan((13, 14), signals=108)
    lower = Used()
    lower.scan((10, 10))
    assert not lower.scan((20, 9), signals=104)
    assert lower.scan((24, 13), signals=108)


def test_a_new_thread_counts_from_nothing() -> None:
    used = Used()
    used.scan((10, 10))
    assert used.scan((10, 10), (4, 4), signals=104)


def test_without_a_waiter_or_its_counts_the_verdict_stays() -> None:
    used = Used()
    assert not used.scan((10, 10), waiters=())
    assert not used.locks.needs_another_scan
    used.scan((10, 10))
    used.scan((14, 14), signals=104)
    assert used.scan((14, 20), signals=110, waiters=())
    assert SEM in used.locks.observe(scan(sem(generation=1, signals=110)))


def test_the_baseline_is_that_of_the_present_semaphore() -> None:
    used = Used()
    used.scan((10, 10))
    assert not used.scan((14, 14), signals=104, generation=2)
    assert used.locks.needs_another_scan
    assert used.scan((18, 18), signals=108, generation=2)


def test_the_baseline_goes_with_the_semaphore() -> None:
    used = Used()
    used.scan((10, 10))
    used.locks.observe(records.snapshot((), ()))
    assert not used.scan((14, 14), signals=104)
    assert used.locks.needs_another_scan


def test_counts_that_a_living_thread_hides_are_not_used() -> None:
    def after(**unknown: Any) -> bool:
        locks = SemaphoreLocks()
        hidden = thread(7, 0, 0, uses=None, **unknown)
        locks.observe(scan(sem(generation=1), thread(1, 10, 10), hidden))
        now = scan(sem(generation=1, signals=104), thread(1, 14, 14), hidden)
        return SEM in locks.observe(now)

    assert not after()
    assert after(alive=False)


def test_uses_of_other_semaphores_do_not_count() -> None:
    locks = SemaphoreLocks()
    other = replace(thread(2, 0, 0), uses=(LockUse(SEM + 1, 50, 50),))
    locks.observe(scan(sem(generation=1), thread(1, 10, 10), other))
    more = replace(other, uses=(LockUse(SEM + 1, 90, 90),))
    now = scan(sem(generation=1, signals=101), thread(1, 11, 11), more)
    assert SEM not in locks.observe(now)


# ---- holders ----


def owner_of(*threads: Thread, **fields: Any) -> tuple[int, ...]:
    lock = sem(used_as_lock=True, **fields)
    draft = scan(lock, *threads).draft()
    annotate_holders(draft, dict)
    return draft.locks[0].holders


def test_a_holder_that_waits_for_another_lock_is_a_holder() -> None:
    elsewhere = records.wait(3, Kind.MUTEX, 1.0)
    assert owner_of(thread(5, 4, 3, waiting_for=elsewhere)) == (5,)
    itself = records.wait(SEM, Kind.SEM, 1.0)
    assert owner_of(thread(5, 4, 3, waiting_for=itself)) == ()


def test_a_thread_with_hidden_counts_may_be_the_holder() -> None:
    assert owner_of(thread(5, 4, 3), thread(6, 0, 0, uses=None)) == ()
    shared = replace(records.wait(3, Kind.MUTEX, 1.0), pshared=True)
    assert owner_of(thread(5, 4, 3, waiting_for=shared)) == (5,)


def test_locks_without_a_known_holder_stay_the_same() -> None:
    draft = scan(sem(used_as_lock=True), thread(5, 3, 3)).draft()
    threads, locks = draft.threads, draft.locks
    annotate_holders(draft, dict)
    assert draft.threads is threads
    assert draft.locks is locks
