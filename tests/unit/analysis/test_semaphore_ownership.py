"""Which thread has a semaphore, and which semaphores are locks, from the counts of threads."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.analysis import semaphore_ownership
from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.export import snapshot_codec
from locktop.collector.model import Held, Kind, Lock, LockUse, Snapshot, ThreadState, WaitStack

SEM = 9
WAITER, FIRST, SECOND = 1, 2, 3


def owned(snapshot: Snapshot, again: semaphore_ownership.ReadAgain) -> Snapshot:
    draft = snapshot.draft()
    semaphore_ownership.annotate_holders(draft, again)
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
    lock = records.lock(SEM, "s", Kind.SEM, wait_s=5.0, waiters=(WAITER,), signals=100)
    lock = replace(lock, acquisitions=100 + sum(ahead), first_value=1, used_as_lock=True)
    return records.snapshot((waiter, *others), (lock,))


def annotated(snapshot: Snapshot) -> Snapshot:
    """The snapshot with holders; a new address needs no second reading."""
    return owned(snapshot, dict)


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
    assert holders(seen, acquisitions=101) == ()


@pytest.mark.parametrize(
    "lock",
    [
        {"used_as_lock": False},
        {"waiters": ()},
        {"first_value": 2},
        {"first_value": None},
        {"foreign_releases": True},
        {"acquisitions": 102},  # an ended thread has got a unit
        {"acquisitions": 100},
        {"acquisitions": None},
        {"signals": None},
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


def test_a_reused_address_needs_two_equal_readings() -> None:
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


# ---- which semaphores are used as locks ----


def sem(
    first_value: int | None, signals: int | None, acquisitions: int | None = 0, **more: object
) -> Lock:
    made = records.lock(9, "s", Kind.SEM, wait_s=5.0, waiters=(1,), signals=signals, **more)
    return replace(
        made,
        acquisitions=acquisitions,
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
        (
            sem(1, 3, 4, generation=1),
            ((1, 1), (3, 2)),
            False,
        ),  # or an earlier semaphore was at the address
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


def verdicts_in_scans(*scans: Sequence[tuple[int, int]]) -> list[bool]:
    """Whether a semaphore is known to be used as a lock, scan by scan.

    Another semaphore lay at the same address, and other threads posted that one. Each argument has
    the counts of one scan: how often each thread has got and posted the semaphore.
    """
    classifier = Classifier()
    verdicts = []
    for uses in scans:
        posts = sum(posted for _, posted in uses)
        lock = sem(1, posts, generation=3, foreign_releases=True)
        verdicts.append(classifier.classify(scan_of_semaphore(lock, *uses)).locks[0].used_as_lock)
    return verdicts


@pytest.mark.parametrize(
    ("scans", "verdicts"),
    [
        ([[(7, 9), (4, 2)], [(9, 11), (6, 3)], [(9, 11), (7, 4)]], [False, False, True]),
        (
            [[(7, 9), (4, 2)], [(9, 11), (6, 5)]],
            [False, True],
        ),  # the thread had the semaphore at the first scan
        ([[(7, 9), (4, 2)], [(7, 9), (9, 7)], [(7, 11), (9, 7)]], [False, True, False]),
        (
            [[(7, 9), (4, 2)], [(7, 20), (14, 2)]],
            [False, False],
        ),  # one thread posts, the other thread gets
        ([[(7, 9), (4, 2)], [(2, 2), (9, 7)], [(2, 2), (14, 12)]], [False, False, True]),
        ([[(7, 9)], [(7, 9), (5, 4)]], [False, True]),  # a new thread
    ],
)
def test_new_counts_decide_about_a_semaphore_at_a_reused_address(
    scans: list[list[tuple[int, int]]], verdicts: list[bool]
) -> None:
    assert verdicts_in_scans(*scans) == verdicts


def test_the_counts_of_ended_threads_are_unknown_at_a_reused_address() -> None:
    classifier = Classifier()
    for posts, uses in ((11, ((7, 9), (4, 2))), (23, ((7, 9), (9, 7)))):
        lock = sem(1, posts, generation=1)
        after = classifier.classify(scan_of_semaphore(lock, *uses))
        assert not after.locks[0].used_as_lock
    anew = sem(1, 33, generation=2)
    assert (
        not classifier.classify(scan_of_semaphore(anew, (12, 14), (14, 12))).locks[0].used_as_lock
    )
    threads = scan_of_semaphore(anew, (22, 24), (14, 12)).threads
    unknown = (*threads, records.thread(9, "full", ThreadState.IDLE, uses=None))
    seen = records.snapshot(unknown, (replace(anew, signals=43),))
    assert not classifier.classify(seen).locks[0].used_as_lock
    seen = records.snapshot(threads, (replace(anew, signals=43),))
    assert classifier.classify(seen).locks[0].used_as_lock
    seen = records.snapshot((), (replace(anew, waiters=()),))
    assert classifier.classify(seen).locks[0].used_as_lock, "the verdict stays"
