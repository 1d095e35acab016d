"""The details of a class begin with the waits for which nothing names a holder, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

import pytest
from msgspec.structs import replace
from unit.builders import blocking, records, scenarios

from locktop.collector.model import (
    ActivityState,
    Hang,
    LockRates,
    Pattern,
    PatternName,
    Snapshot,
    ThreadActivity,
    ThreadState,
)
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.class_details import class_details
from locktop.tui.views.styled_line import line_text

SYNC = 4, (records.frame("sync_wal", "wal.c", 7),)


def findings(snapshot: Snapshot) -> list[str]:
    """The lines between the name of the only class and the thread that signals or holds."""
    index = SnapshotIndex(snapshot)
    (lock_class,) = index.classes.values()
    lines = [line_text(line) for line in class_details(index, lock_class)][1:]
    ends = (" signaller", " held by", " waiters")
    return list(takewhile(lambda line: not line.startswith(ends), lines))


def in_sync(snapshot: Snapshot) -> Snapshot:
    """The leader of the writers is in a system call."""
    now = ThreadActivity(
        blocking.HOLDER, ActivityState.BLOCKED, "fdatasync", "fdatasync(7)", 0.2, 4
    )
    leader, *writers = snapshot.threads
    stacks = {**snapshot.stacks, SYNC[0]: SYNC[1]}
    return replace(snapshot, threads=(replace(leader, now=now), *writers), stacks=stacks)


def with_second(snapshot: Snapshot) -> Snapshot:
    other = records.thread(900, "other", ThreadState.RUNNING)
    return replace(snapshot, threads=(*snapshot.threads, other))


def with_holder(snapshot: Snapshot) -> Snapshot:
    locks = tuple(replace(lock, holders=(blocking.HOLDER,)) for lock in snapshot.locks)
    return replace(snapshot, locks=locks)


def with_waits(snapshot: Snapshot, duration_s: float, rate: float = 0.0) -> Snapshot:
    """All waits have lasted for so long; each lock has so many seconds of waits a second."""
    threads = tuple(
        replace(thread, waiting_for=replace(thread.waiting_for, duration_s=duration_s))
        if thread.waiting_for is not None
        else thread
        for thread in snapshot.threads
    )
    locks = tuple(replace(lock, rates=LockRates(wait=rate)) for lock in snapshot.locks)
    return replace(snapshot, threads=threads, locks=locks)


def test_the_finding_names_the_only_thread_that_does_not_wait_and_its_call() -> None:
    finding, advice = findings(in_sync(blocking.writers(3)))
    assert finding == (
        " Long wait: 3 threads wait, the longest 1.02s; likely behind leader, in fdatasync"
        " at sync_wal wal.c:7"
    )
    assert advice == (
        " advice    Look at leader first (Enter): see what it does before it signals it."
    )


def test_without_such_a_thread_the_advice_is_to_search_it() -> None:
    finding, advice = findings(with_second(blocking.writers(3)))
    assert finding.endswith("; its holder is not known")
    assert advice == " advice    Find the thread that signals it: a shows what each thread does."


def test_many_short_waits_are_contention() -> None:
    finding, _ = findings(with_waits(blocking.writers(3), 0.0004, 0.7))
    assert finding.startswith(
        " Contended: 3 threads wait, the longest 400us, together 2.10s a second; likely behind"
    )


@pytest.mark.parametrize(
    "near_miss",
    [
        lambda: with_waits(blocking.writers(3), 0.0004, 0.03),
        lambda: with_holder(with_waits(blocking.writers(3), 0.0004, 0.7)),
    ],
    ids=["few short waits", "a holder is known"],
)
def test_a_near_miss_is_no_finding(near_miss: Callable[[], Snapshot]) -> None:
    assert findings(near_miss()) == []


def test_a_pattern_says_more() -> None:
    pattern = Pattern(PatternName.CONVOY, 1, (), "3 threads wait", "Take it less often.")
    snapshot = replace(blocking.writers(3), patterns=(pattern,))
    assert findings(snapshot) == [" Convoy: 3 threads wait", " advice    Take it less often."]


def test_a_hang_of_the_whole_process_comes_before_the_waits() -> None:
    calm = with_waits(with_second(blocking.writers(4)), 12.5)
    tids = tuple(thread.tid for thread in calm.threads if thread.waiting_for is not None)
    hung = replace(calm, hang=Hang(certain=True, since_s=12.5, tids=tids))
    headline, *groups, more, advice = findings(hung)
    assert headline.startswith(" Hang: all ")
    assert [line.split(" waits")[0] for line in groups] == [
        "   writer-200",
        "   writer-201",
        "   writer-202",
    ]
    assert more == "   and 1 more group of threads"
    assert advice.startswith(" advice    Nothing in this process")
    of_others = replace(calm, hang=Hang(certain=True, since_s=12.5, tids=(900,)))
    assert findings(of_others) == findings(calm)


def test_a_deadlock_of_one_lock_is_a_deadlock_of_the_class() -> None:
    snapshot = scenarios.deadlock()
    edge = snapshot.deadlocks[0].cycle[0]
    index = SnapshotIndex(snapshot)
    (lock_class,) = (one for one in index.classes.values() if edge.waits_for in one.locks)
    lines = [line_text(line) for line in class_details(index, lock_class)]
    assert lines[1].startswith(" Deadlock: 3 threads wait for each other"), lines
    assert lines[1].endswith("  d shows it")
