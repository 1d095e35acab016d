"""Semaphores that are used as locks, from scan to scan, by the counts of one life."""

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
    values = {"wait_s": 5.0, "waiters": (1,), "life_signals": 100, "life_acquisitions": 101,
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
        (sem(life_signals=0, life_acquisitions=1), False),
        (sem(life_signals=1, life_acquisitions=2), True),
        (sem(life_acquisitions=102), False),
        (sem(life_acquisitions=99), True),
        (sem(first_value=2, life_acquisitions=102), True),
        (sem(life_acquisitions=None), False),
        (sem(life_signals=None), False),
        (sem(foreign_releases=True), False),
    ],
)
def test_a_semaphore_at_a_new_address_is_a_lock_by_its_sums(lock: Lock, expected: bool) -> None:
    assert is_lock(lock) is expected


def test_a_lock_stays_a_lock_while_its_sums_are_a_little_wrong() -> None:
    locks = SemaphoreLocks()
    assert locks.observe(scan(sem()))
    assert locks.observe(scan(sem(life_acquisitions=103)))
    assert locks.observe(scan(sem(life_acquisitions=None)))
    assert not locks.observe(scan(sem(foreign_releases=True)))
    assert not locks.observe(scan(sem(life_acquisitions=103)))


def test_another_semaphore_at_the_address_begins_anew() -> None:
    locks = SemaphoreLocks()
    assert locks.observe(scan(sem()))
    assert not locks.observe(scan(sem(generation=1, life_acquisitions=103)))
    assert not locks.observe(scan(sem(generation=2, life_acquisitions=None)))


# ---- holders ----


def owner_of(*threads: Thread, **fields: Any) -> tuple[int, ...]:
    lock = sem(used_as_lock=True, **fields)
    draft = scan(lock, *threads).draft()
    annotate_holders(draft)
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
    annotate_holders(draft)
    assert draft.threads is threads
    assert draft.locks is locks
