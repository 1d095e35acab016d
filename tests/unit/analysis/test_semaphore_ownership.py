"""Who has a semaphore, from what threads counted of it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.analysis import semaphore_ownership
from locktop.collector.model import Held, Kind, Lock, LockUse, Snapshot, ThreadState

SEM = 9
WAITER, FIRST, SECOND = 1, 2, 3


def owned(snapshot: Snapshot, again: semaphore_ownership.ReadAgain) -> Snapshot:
    draft = snapshot.draft()
    semaphore_ownership.annotate_holders(draft, again)
    return draft.snapshot()


def at_semaphore(**uses: tuple[int, int] | None) -> Snapshot:
    """One thread waits for a semaphore that is a lock; the others, by name, have got and posted it
    so often, None: not all is known."""
    waiter = records.thread(
        WAITER, "waiter", ThreadState.WAITING, waiting_for=records.wait(SEM, Kind.SEM, 5.0)
    )
    others = [
        records.thread(
            {"first": FIRST, "second": SECOND}[name], name, ThreadState.RUNNING,
            uses=(LockUse(SEM, *use), LockUse(77, 5, 4)) if use else None,
        )
        for name, use in uses.items()
    ]  # fmt: skip
    ahead = [use[0] - use[1] for use in uses.values() if use]
    lock = records.lock(SEM, "s", Kind.SEM, wait_s=5.0, waiters=(WAITER,), signals=100)
    lock = replace(lock, acquisitions=100 + sum(ahead), first_value=1, used_as_lock=True)
    return records.snapshot((waiter, *others), (lock,))


def annotated(snapshot: Snapshot) -> Snapshot:
    """Without a second reading: none is needed where nothing lay there before."""
    return owned(snapshot, dict)


def holders(snapshot: Snapshot, **lock: object) -> tuple[int, ...]:
    changed = tuple([replace(one, **lock) for one in snapshot.locks])  # type: ignore[arg-type]
    found: Lock = annotated(replace(snapshot, locks=changed)).locks[0]
    return found.holders


def test_a_thread_that_is_one_ahead_has_it() -> None:
    seen = at_semaphore(first=(4, 3), second=(7, 7))
    found = annotated(seen)
    assert found.locks[0].holders == (FIRST,)
    waiter, first, second = found.threads
    assert waiter.waiting_for is not None
    assert waiter.waiting_for.holders == (FIRST,)
    assert first.holds == (Held(SEM, 0, None),)
    assert second is seen.threads[2]


def test_locks_that_a_thread_holds_already_stay() -> None:
    seen = at_semaphore(first=(4, 3))
    other = Held(77, 5, 1.0)
    threads = (seen.threads[0], replace(seen.threads[1], holds=(other,)))
    assert annotated(replace(seen, threads=threads)).threads[1].holds == (
        other,
        Held(SEM, 0, None),
    )


def test_one_that_ended_may_have_it_and_nobody_waits_for_that_one() -> None:
    seen = at_semaphore(first=(4, 3))
    ended = replace(seen.threads[1], alive=False)
    found = annotated(replace(seen, threads=(seen.threads[0], ended)))
    assert found.locks[0].holders == (FIRST,)
    assert found.threads[0] is seen.threads[0]


@pytest.mark.parametrize(
    "uses",
    [
        {"first": (4, 3), "second": (2, 1)},  # one had one that lay there before, or it moves on
        {"first": (5, 3), "second": (2, 3)},
        {"first": (5, 3)},
        {"first": (3, 3)},
        {"first": (4, 3), "second": None},  # not all is known
        {},
    ],
)
def test_nobody_is_named_for_sure(uses: dict[str, tuple[int, int] | None]) -> None:
    seen = at_semaphore(**uses)
    # That the sum is right is not enough.
    assert holders(seen, acquisitions=101) == ()


@pytest.mark.parametrize(
    "lock",
    [
        {"used_as_lock": False},
        {"waiters": ()},
        {"first_value": 2},
        {"first_value": None},
        {"foreign_releases": True},
        {"acquisitions": 102},  # one that ended has got one
        {"acquisitions": 100},
        {"acquisitions": None},
        {"signals": None},
    ],
)
def test_of_what_is_no_lock_of_one_unit_nobody_is_named(lock: dict[str, object]) -> None:
    seen = at_semaphore(first=(4, 3))
    assert holders(seen) == (FIRST,)
    assert holders(seen, **lock) == ()


def test_nobody_is_named_where_not_all_was_counted() -> None:
    seen = at_semaphore(first=(4, 3))
    assert holders(replace(seen, complete=False)) == ()


def test_nobody_is_named_where_other_processes_may_have_posted_it() -> None:
    seen = at_semaphore(first=(4, 3))
    wait = seen.threads[0].waiting_for
    assert wait is not None
    waiter = replace(seen.threads[0], waiting_for=replace(wait, pshared=True))
    assert holders(replace(seen, threads=(waiter, *seen.threads[1:]))) == ()


def test_a_thread_that_waits_for_its_own_semaphore_waits_for_a_signal() -> None:
    seen = at_semaphore(first=(4, 3))
    itself = replace(seen.threads[1], waiting_for=seen.threads[0].waiting_for)
    assert holders(replace(seen, threads=(seen.threads[0], itself))) == ()


def test_at_a_reused_address_two_readings_must_agree() -> None:
    seen = at_semaphore(first=(4, 3), second=(7, 7))
    seen = replace(seen, locks=(replace(seen.locks[0], generation=2),))
    same = {
        FIRST: (LockUse(SEM, 4, 3),),
        SECOND: (LockUse(5, 1, 0), LockUse(SEM, 7, 7)),
        WAITER: (),
    }
    assert owned(seen, lambda: same).locks[0].holders == (FIRST,)
    for change in (
        (SECOND, LockUse(SEM, 8, 7)),
        (SECOND, LockUse(SEM, 8, 8)),
        (4, LockUse(SEM, 1, 1)),
    ):
        moved = {**same, change[0]: (change[1],)}
        assert owned(seen, lambda moved=moved: moved).locks[0].holders == ()
    gone = {FIRST: same[FIRST]}
    assert owned(seen, lambda: gone).locks[0].holders == ()
