"""Semaphores that are used as locks, and those that are signals."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.analysis.idle.rules import Rules, parse
from locktop.collector.export import snapshot_codec
from locktop.collector.export.snapshot_codec import parse as parse_snapshot
from locktop.collector.model import Kind, Lock, LockUse, Snapshot, ThreadState, WaitStack

# ---- what follows ----


def classified(snapshot: Snapshot, *own: str) -> Snapshot:
    return Classifier(Rules(parse("\n".join(own), "x"))).classify(snapshot)


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


def at_semaphore(lock: Lock, *uses: tuple[int, int]) -> Snapshot:
    """One thread waits for it; the threads have got and posted it so often."""
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
        (sem(1, 9, 10), ((1, 1), (3, 2)), True),  # threads that ended got it, too
        (sem(0, 3, 4), ((1, 1), (3, 2)), False),  # none was free: a queue
        (sem(None, 3, 4), ((1, 1), (3, 2)), False),  # not known
        (sem(1, None, None), ((1, 1), (3, 2)), False),
        (sem(1, 0, 1), ((1, 0), (0, 0)), False),  # never given back
        (sem(1, 3, 6), ((2, 1), (4, 2)), False),  # another process posts it
        (sem(1, 3, 4, generation=1), ((1, 1), (3, 2)), False),  # or what lay there before
        (sem(1, 3, 4, foreign_releases=True), ((1, 1), (3, 2)), False),
    ],
)
def test_semaphores_used_as_locks(
    lock: Lock, uses: tuple[tuple[int, int], ...], is_lock: bool
) -> None:
    classifier = Classifier()
    after = classifier.classify(at_semaphore(lock, *uses))
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
    saved = parse_snapshot(json.dumps(snapshot_codec.document(later)).encode(), "x")
    assert saved.locks[0].idle is not is_lock


def later(first: Sequence[tuple[int, int]], *more: Sequence[tuple[int, int]]) -> list[bool]:
    """Whether a semaphore where another one lay, which others posted, is known to be used as a lock
    in one scan after the other; what threads have got and posted by then."""
    classifier = Classifier()
    verdicts = []
    for uses in (first, *more):
        posts = sum(posted for _, posted in uses)
        lock = sem(1, posts, generation=3, foreign_releases=True)
        verdicts.append(classifier.classify(at_semaphore(lock, *uses)).locks[0].used_as_lock)
    return verdicts


@pytest.mark.parametrize(
    ("scans", "verdicts"),
    [
        ([[(7, 9), (4, 2)], [(9, 11), (6, 3)], [(9, 11), (7, 4)]], [False, False, True]),
        ([[(7, 9), (4, 2)], [(9, 11), (6, 5)]], [False, True]),  # it had it when first seen
        ([[(7, 9), (4, 2)], [(7, 9), (9, 7)], [(7, 11), (9, 7)]], [False, True, False]),
        ([[(7, 9), (4, 2)], [(7, 20), (14, 2)]], [False, False]),  # one posts, the other gets
        ([[(7, 9), (4, 2)], [(2, 2), (9, 7)], [(2, 2), (14, 12)]], [False, False, True]),
        ([[(7, 9)], [(7, 9), (5, 4)]], [False, True]),  # a new thread
    ],
)
def test_semaphores_at_an_address_that_had_other_semaphores(
    scans: list[list[tuple[int, int]]], verdicts: list[bool]
) -> None:
    assert later(*scans) == verdicts


def test_the_counts_of_ended_threads_are_unknown_at_a_reused_address() -> None:
    classifier = Classifier()
    for posts, uses in ((11, ((7, 9), (4, 2))), (23, ((7, 9), (9, 7)))):
        lock = sem(1, posts, generation=1)
        after = classifier.classify(at_semaphore(lock, *uses))
        assert not after.locks[0].used_as_lock
    anew = sem(1, 33, generation=2)
    assert not classifier.classify(at_semaphore(anew, (12, 14), (14, 12))).locks[0].used_as_lock
    threads = at_semaphore(anew, (22, 24), (14, 12)).threads
    unknown = (*threads, records.thread(9, "full", ThreadState.IDLE, uses=None))
    seen = records.snapshot(unknown, (replace(anew, signals=43),))
    assert not classifier.classify(seen).locks[0].used_as_lock
    seen = records.snapshot(threads, (replace(anew, signals=43),))
    assert classifier.classify(seen).locks[0].used_as_lock
    seen = records.snapshot((), (replace(anew, waiters=()),))
    assert classifier.classify(seen).locks[0].used_as_lock, "it stays known"
