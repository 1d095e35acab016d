"""The sentences about who had a lock during a wait."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import records
from unit.builders.time_lines import MS, record

from locktop.collector.model import (
    ActivityState,
    HoldShare,
    Kind,
    ThreadActivity,
    ThreadState,
    WaitHolders,
)
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.wait_holders import sentences

NAMES = {1: "compactor", 2: "serve-0", 3: "serve-1", 4: "serve-2", 5: "serve-3", 6: "serve-4"}
INDEX = SnapshotIndex(
    records.snapshot(
        tuple(records.thread(tid, name, ThreadState.RUNNING) for tid, name in NAMES.items()), ()
    )
)
WAIT = WaitHolders(wait_ns=2000 * MS, is_part=False, shares=(), unrecorded_ns=0)


def share(tid: int, milliseconds: float) -> HoldShare:
    return HoldShare(tid=tid, held_ns=round(milliseconds * MS), site=0)


def said(found: WaitHolders, began_with: int = 0, kind: Kind = Kind.MUTEX) -> list[str]:
    wait = record(9, 0, 2000, holder=began_with, kind=kind)
    return list(sentences(found, wait, INDEX))


def test_the_largest_share_comes_first_with_what_its_thread_did() -> None:
    fsync = ThreadActivity(tid=1, doing=ActivityState.BLOCKED, call="fsync", what="fsync(5)")
    found = replace(WAIT, shares=(replace(share(1, 1980), activity=fsync), share(2, 0.029)))
    assert said(found) == [
        "compactor had it for 1.98 s of the 2.00 s, in fsync(5)",
        "then serve-0 29.0 us",
    ]


def test_the_site_of_the_hold_stands_for_an_unknown_call() -> None:
    running = ThreadActivity(tid=1, doing=ActivityState.RUNNING)
    one = HoldShare(tid=1, held_ns=1980 * MS, site=0x401100, activity=running)
    assert said(replace(WAIT, shares=(one,))) == [
        "compactor had it for 1.98 s of the 2.00 s, taken in cache_put cache.c:88"
    ]


def test_more_threads_than_fit_are_counted() -> None:
    found = replace(WAIT, shares=tuple(share(tid, 333) for tid in NAMES))
    assert said(found) == [
        "compactor had it for 333 ms of the 2.00 s",
        "then serve-0 333 ms, serve-1 333 ms, serve-2 333 ms, 2 more threads",
    ]


def test_readers_are_beside_each_other() -> None:
    readers = tuple(replace(share(tid, 1900), is_shared=True) for tid in (2, 3))
    assert said(replace(WAIT, shares=readers))[1] == "beside it serve-1 1.90 s"


def test_a_bound_and_an_estimate_have_their_words() -> None:
    bound = replace(share(1, 1500), is_lower_bound=True)
    found = replace(WAIT, shares=(bound,), unrecorded_ns=500 * MS)
    assert said(found) == ["compactor had it for at least 1.50 s of the 2.00 s"]
    found = replace(WAIT, shares=(share(1, 1500),), unrecorded_ns=500 * MS, is_estimate=True)
    assert said(found) == [
        "compactor had it for about 1.50 s of the 2.00 s",
        "no hold is known for the other 500 ms",
    ]


def test_most_of_the_wait_without_a_hold_comes_first() -> None:
    found = replace(WAIT, shares=(share(2, 0.029),), unrecorded_ns=1999 * MS)
    assert said(found, began_with=1) == [
        "compactor had it when the wait began; no hold is known for 2.00 s of the 2.00 s",
        "serve-0 had it for 29.0 us",
    ]
    assert said(found, began_with=2)[0] == "no hold is known for 2.00 s of the 2.00 s"


def test_a_part_of_a_wait_has_its_words() -> None:
    found = replace(WAIT, shares=(share(1, 1980),), is_part=True)
    assert said(found) == ["compactor had it for 1.98 s of the 2.00 s in this span"]


def test_holders_of_a_futex_are_known_by_wakes_and_by_the_stack_of_their_wait() -> None:
    found = replace(WAIT, shares=(replace(share(1, 1980), stack=2), share(2, 0.029)))
    assert said(found, kind=Kind.FUTEX) == [
        "compactor had it for 1.98 s of the 2.00 s, taken in cache_put cache.c:88",
        "then serve-0 29.0 us",
        "as wakes of the waiters show, of holds that began with a wait",
    ]


def test_holders_of_a_semaphore_are_known_by_their_posts() -> None:
    found = replace(WAIT, shares=(share(1, 1980),))
    assert said(found, kind=Kind.SEM)[1:] == [
        "as posts while threads waited show, of holds that began with a wait"
    ]
