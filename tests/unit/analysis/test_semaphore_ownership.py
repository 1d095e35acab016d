"""Which thread has a semaphore, and which semaphores are locks, from the counts of threads."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.analysis import semaphore_ownership
from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.model import Held, Kind, Lock, LockUse, Snapshot, ThreadState, WaitStack
from locktop.collector.render.documents import snapshot_codec

SEM = 9
WAITER, FIRST, SECOND = 1, 2, 3


def annotated(snapshot: Snapshot) -> Snapshot:
    """The snapshot with holders."""
    draft = snapshot.draft()
    semaphore_ownership.annotate_holders(draft)
    return draft.snapshot()


def at_semaphore(**uses: tuple[int, int] | None) -> Snapshot:
    """A thread waits for a semaphore that is a lock.

    ``uses`` has, by the name of another thread, how often that thread got and posted the semaphore.
    A value is None if the counts are incomplete.
    """
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
    lock = records.lock(SEM, "s", Kind.SEM, wait_s=5.0, waiters=(WAITER,), life_signals=100)
    lock = replace(lock, life_acquisitions=100 + sum(ahead), first_value=1, used_as_lock=True)
    return records.snapshot((waiter, *others), (lock,))


def holders(snapshot: Snapshot, **lock: object) -> tuple[int, ...]:
    changed = tuple([replace(one, **lock) for one in snapshot.locks])  # type: ignore[arg-type]
    found: Lock = annotated(replace(snapshot, locks=changed)).locks[0]
    return found.holders


def test_a_thread_with_one_get_more_than_posts_holds_the_semaphore() -> None:
    seen = at_semaphore(first=(4, 3), second=(7, 7))
    found = annotated(seen)
    assert found.locks[0].holders == (FIRST,)
    waiter, first, second = found.threads
    assert waiter.waiting_for is not None
    assert waiter.waiting_for.holders == (FIRST,)
    assert first.holds == (Held(SEM, 0, None),)
    assert second is seen.threads[2]


def test_known_held_locks_stay_with_the_thread() -> None:
    seen = at_semaphore(first=(4, 3))
    other = Held(77, 5, 1.0)
    threads = (seen.threads[0], replace(seen.threads[1], holds=(other,)))
    assert annotated(replace(seen, threads=threads)).threads[1].holds == (
        other,
        Held(SEM, 0, None),
    )


def test_an_ended_thread_may_hold_a_semaphore_but_blocks_no_thread() -> None:
    seen = at_semaphore(first=(4, 3))
    ended = replace(seen.threads[1], alive=False)
    found = annotated(replace(seen, threads=(seen.threads[0], ended)))
    assert found.locks[0].holders == (FIRST,)
    assert found.threads[0] is seen.threads[0]


@pytest.mark.parametrize(
    "uses",
    [
        {
            "first": (4, 3),
            "second": (2, 1),
        },  # a thread got an earlier semaphore, or the semaphore moves on
        {"first": (5, 3), "second": (2, 3)},
        {"first": (5, 3)},
        {"first": (3, 3)},
        {"first": (4, 3), "second": None},  # the counts are incomplete
        {},
    ],
)
def test_uncertain_counts_name_no_holder(uses: dict[str, tuple[int, int] | None]) -> None:
    seen = at_semaphore(**uses)
    # A correct sum is not enough.
    assert holders(seen, life_acquisitions=101) == ()


@pytest.mark.parametrize(
    "lock",
    [
        {"used_as_lock": False},
        {"waiters": ()},
        {"first_value": 2},
        {"first_value": None},
        {"foreign_releases": True},
        {"life_acquisitions": 102},  # an ended thread has got a unit
        {"life_acquisitions": 100},
        {"life_acquisitions": None},
        {"life_signals": None},
    ],
)
def test_only_a_lock_of_one_unit_has_a_named_holder(lock: dict[str, object]) -> None:
    seen = at_semaphore(first=(4, 3))
    assert holders(seen) == (FIRST,)
    assert holders(seen, **lock) == ()


def test_incomplete_counts_name_no_holder() -> None:
    seen = at_semaphore(first=(4, 3))
    assert holders(replace(seen, complete=False)) == ()


def test_a_process_shared_semaphore_has_no_named_holder() -> None:
    seen = at_semaphore(first=(4, 3))
    wait = seen.threads[0].waiting_for
    assert wait is not None
    waiter = replace(seen.threads[0], waiting_for=replace(wait, pshared=True))
    assert holders(replace(seen, threads=(waiter, *seen.threads[1:]))) == ()


def test_a_thread_that_waits_for_its_own_semaphore_waits_for_a_signal() -> None:
    seen = at_semaphore(first=(4, 3))
    itself = replace(seen.threads[1], waiting_for=seen.threads[0].waiting_for)
    assert holders(replace(seen, threads=(seen.threads[0], itself))) == ()


def test_only_the_counts_of_the_present_life_name_the_holder() -> None:
    """The first thread never posted a former semaphore at the address."""
    seen = at_semaphore(first=(4, 3), second=(7, 6))
    second = replace(seen.threads[2], uses=(LockUse(SEM, 7, 6, life=2),))
    seen = replace(seen, threads=(*seen.threads[:2], second))
    changed = {"generation": 2, "life_acquisitions": 7, "life_signals": 6}
    assert holders(seen, **changed) == (SECOND,)
    assert holders(seen, **{**changed, "generation": 0}) == (FIRST,)
    assert holders(seen, **{**changed, "generation": 1}) == ()


# ---- which semaphores are used as locks ----


def sem(
    first_value: int | None, signals: int | None, acquisitions: int | None = 0, **more: object
) -> Lock:
    made = records.lock(9, "s", Kind.SEM, wait_s=5.0, waiters=(1,), life_signals=signals, **more)
    return replace(
        made,
        life_acquisitions=acquisitions,
        first_value=first_value,
        wait_stacks=(WaitStack(1, 1, 5.0),),
    )


def scan_of_semaphore(lock: Lock, *uses: tuple[int, int]) -> Snapshot:
    """A thread waits for the semaphore; each thread has got and posted the semaphore so often."""
    threads = tuple(
        records.thread(
            1 + n, f"t{n}", ThreadState.IDLE, uses=(LockUse(lock.id, *use),),
            waiting_for=records.wait(lock.id, Kind.SEM, 5.0) if n == 0 else None,
        )
        for n, use in enumerate(uses)
    )  # fmt: skip
    return records.snapshot(threads, (lock,))


@pytest.mark.parametrize(
    ("lock", "uses", "is_lock"),
    [
        (sem(1, 3, 4), ((1, 1), (3, 2)), True),
        (sem(4, 3, 4), ((1, 1), (3, 2)), True),
        (sem(1, 9, 10), ((1, 1), (3, 2)), True),  # ended threads got the semaphore too
        (sem(0, 3, 4), ((1, 1), (3, 2)), False),  # no unit was free: a queue
        (sem(None, 3, 4), ((1, 1), (3, 2)), False),  # the first value is not known
        (sem(1, None, None), ((1, 1), (3, 2)), False),  # the counts are not known
        (sem(1, 0, 1), ((1, 0), (0, 0)), False),  # no thread posts
        (sem(1, 3, 6), ((2, 1), (4, 2)), False),  # another process posts the semaphore
        (sem(1, 3, 4, generation=1), ((1, 1), (3, 2)), True),  # the counts are of one life
        (sem(1, 3, 4, foreign_releases=True), ((1, 1), (3, 2)), False),
    ],
)
def test_counts_tell_a_semaphore_used_as_a_lock_from_a_signal(
    lock: Lock, uses: tuple[tuple[int, int], ...], is_lock: bool
) -> None:
    classifier = Classifier()
    after = classifier.classify(scan_of_semaphore(lock, *uses))
    found = after.locks[0]
    assert (found.used_as_lock, found.idle, found.idle_s) == (
        is_lock, not is_lock, 0.0 if is_lock else 5.0,
    )  # fmt: skip
    assert after.why == {1: "used-as-lock" if is_lock else "semaphore"}
    assert (after.threads[0].state is ThreadState.WAITING) is is_lock
    # The counts are known while a thread waits. The verdict stays afterwards, and in a file.
    free = replace(lock, waiters=())
    later = classifier.classify(records.snapshot((), (free,)))
    assert later.locks[0].idle is not is_lock
    saved = snapshot_codec.parse(json.dumps(snapshot_codec.document(later)).encode(), "x")
    assert saved.locks[0].idle is not is_lock


def test_the_verdict_stays_for_one_life_unless_a_thread_posts_unheld() -> None:
    def verdict(lock: Lock) -> bool:
        return classifier.classify(scan_of_semaphore(lock, (1, 1))).locks[0].used_as_lock

    classifier = Classifier()
    assert verdict(sem(1, 3, 4, generation=1))
    assert verdict(sem(1, 3, 5, generation=1)), "the unit changed hands during the scan"
    assert verdict(sem(1, None, None, generation=1))
    assert not verdict(sem(1, None, None, generation=2))
    assert not verdict(sem(1, 3, 5, generation=2))
    assert verdict(sem(1, 3, 4, generation=2))
    assert not verdict(sem(1, 4, 4, generation=2, foreign_releases=True))


def unit_holders(seen: Snapshot, **lock: object) -> tuple[int, ...] | None:
    """Return the holders of the units, with other figures of the semaphore."""
    locks = tuple([replace(one, **lock) for one in seen.locks])  # type: ignore[arg-type]
    return semaphore_ownership.unit_holders(replace(seen, locks=locks)).get(SEM)


def test_all_threads_with_units_hold_a_semaphore_of_several_units() -> None:
    seen = at_semaphore(first=(4, 3), second=(9, 7))
    assert unit_holders(seen, first_value=3) == (FIRST, SECOND)
    assert unit_holders(at_semaphore(first=(4, 3)), first_value=1) == (FIRST,)


def test_holders_of_units_are_not_known_if_a_unit_is_missing() -> None:
    seen = at_semaphore(first=(4, 3), second=(9, 7))
    assert unit_holders(seen, first_value=4) is None, "a thread that ended may have one"
    assert unit_holders(seen, first_value=3, foreign_releases=True) is None
    assert unit_holders(seen, first_value=3, used_as_lock=False) is None
    assert unit_holders(seen, first_value=3, waiters=()) is None
    assert unit_holders(at_semaphore(first=(4, 3), second=None), first_value=1) is None
    assert unit_holders(at_semaphore(first=(6, 3), second=(3, 4)), first_value=2) is None
    assert unit_holders(replace(seen, complete=False), first_value=3) is None


def test_a_thread_with_a_unit_that_waits_for_another_waits_for_a_signal() -> None:
    seen = at_semaphore(first=(4, 3), second=(9, 7))
    wait = records.wait(SEM, Kind.SEM, 1.0)
    threads = tuple(
        replace(one, waiting_for=wait) if one.tid == FIRST else one for one in seen.threads
    )
    assert unit_holders(replace(seen, threads=threads), first_value=3) is None
