"""The releases of futexes that are locks, joined to their waits."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import records
from unit.builders.time_lines import MS, at, record

from locktop.collector.analysis import timeline, timeline_holds, timeline_waits
from locktop.collector.analysis.futex_releases import join_releases
from locktop.collector.model import Blame, Kind, Lock, Snapshot, TimeLine, WaitRecord

BLAME = (Blame(tid=2, site=7, wait_s=1.0),)


def futex(**more: object) -> Lock:
    lock = records.lock(1, "Rust Mutex", Kind.FUTEX, blame=BLAME, hold_timed=3)
    return replace(lock, idle=False, **more)


def snapshot(lock: Lock) -> Snapshot:
    return records.snapshot((), (lock,))


def wait(tid: int, began_ms: float, wait_ms: float, **more: object) -> WaitRecord:
    return record(tid, began_ms, wait_ms, **{"kind": Kind.FUTEX, **more})


def release(
    tid: int, began_ms: float, hold_ms: float | None, kind: Kind = Kind.FUTEX
) -> WaitRecord:
    return record(tid, began_ms, 0, hold_ms, kind=kind, is_release=True)


def test_the_hold_of_a_release_belongs_to_the_wait_that_ended_when_it_began() -> None:
    waits = [wait(1, 0, 10), wait(1, 30, 10), wait(2, 30, 10)]
    releases = [release(1, 40.002, 5), release(1, 10, 3)]
    found = join_releases([*waits, *releases], snapshot(futex()))
    assert [one.hold_ns for one in found] == [3 * MS, 5 * MS, None]
    assert [(one.tid, one.began_ns) for one in found] == [(1, at(0)), (1, at(30)), (2, at(30))]


def test_a_release_without_a_known_wait_stays() -> None:
    """The thread was woken and waited once more, or took the lock while it was free."""
    alone = [release(1, 12, 3), release(3, 20, None)]
    found = join_releases([wait(1, 0, 10), *alone], snapshot(futex()))
    assert list(found) == [wait(1, 0, 10), *alone]


def test_a_wait_that_gave_up_has_no_hold() -> None:
    gave_up = wait(1, 0, 10, timed_out=True)
    found = join_releases([gave_up, release(1, 10, 3)], snapshot(futex()))
    assert list(found) == [gave_up, release(1, 10, 3)]


@pytest.mark.parametrize(
    "lock",
    [
        replace(futex(blame=()), idle=True),
        records.lock(1, "semaphore for work", Kind.SEM),
        records.lock(1, "other", Kind.MUTEX),
    ],
)
def test_wakes_of_what_is_no_lock_are_left_out(lock: Lock) -> None:
    found = join_releases([wait(1, 0, 10), release(1, 10, 3)], snapshot(lock))
    assert list(found) == [wait(1, 0, 10)]


def test_a_wake_of_a_lock_without_blame_tells_who_woke_whom() -> None:
    """As of a Rust RwLock: its waiters wait at several words."""
    raw = [wait(1, 0, 10), release(1, 10, 30)]
    found = join_releases(raw, snapshot(futex(blame=(), hold_timed=0)))
    assert list(found) == [wait(1, 0, 10), release(1, 40, None)]


def test_without_timed_holds_a_release_tells_its_moment_alone() -> None:
    """A holder that had waited may have released the lock before, without a wake."""
    found = join_releases([wait(1, 0, 10), release(1, 10, 30)], snapshot(futex(hold_timed=0)))
    assert list(found) == [wait(1, 0, 10), release(1, 40, None)]


@pytest.mark.parametrize(("units", "hold_ns"), [(1, 30 * MS), (2, None), (None, None)])
def test_only_of_a_semaphore_with_one_unit_the_time_to_the_post_is_a_hold(
    units: int | None, hold_ns: int | None
) -> None:
    """A unit beside others is no hold of the semaphore, for which the others wait."""
    lock = replace(
        records.lock(1, "slots", Kind.SEM, blame=BLAME, first_value=units), used_as_lock=True
    )
    raw = [wait(1, 0, 10, kind=Kind.SEM), release(1, 10, 30, kind=Kind.SEM)]
    first, *others = join_releases(raw, snapshot(lock))
    assert first.hold_ns == hold_ns
    assert [other.hold_ns for other in others] == ([None] if hold_ns is None else [])


def test_a_release_wakes_the_waiter_and_its_hold_is_that_of_a_holder() -> None:
    raw = [wait(1, 0, 10), release(1, 10, 20), wait(2, 15, 15.1), release(2, 35, None)]
    taken = snapshot(futex())
    waits = list(timeline_waits.classify(join_releases(raw, taken), taken))
    [flow] = timeline.flows(waits)
    assert (flow.from_tid, flow.to_tid, flow.released_ns) == (1, 2, at(30))
    line = TimeLine(
        from_ns=at(0), to_ns=at(100), lanes=(), flows=(), notables=(), is_sampled=False,
        snapshot=taken, holds=timeline_holds.holds_by_lock(waits, ()),
    )  # fmt: skip
    [of_second] = [one for one in waits if one.record.tid == 2 and one.record.wait_ns]
    found = timeline_holds.holders_during(of_second, line)
    assert found is not None
    [share] = found.shares
    assert (share.tid, share.held_ns, share.stack) == (1, 15 * MS, 1)
