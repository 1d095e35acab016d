"""The holders of a lock during a wait."""

from __future__ import annotations

import random

from msgspec.structs import replace
from support.seeds import seeds
from unit.builders import records
from unit.builders.time_lines import MS, at, record, scan, some_waits, timed

from locktop.collector.analysis import timeline_holds
from locktop.collector.model import (
    ActivityState,
    Held,
    HoldersSeen,
    Kind,
    ScanSample,
    ThreadActivity,
    TimedWait,
    TimeLine,
    WaitHolders,
)


def line(
    waits: list[TimedWait],
    samples: list[ScanSample] | None = None,
    from_ms: float = 0,
    to_ms: float = 1000,
    is_sampled: bool = False,
) -> TimeLine:
    """Return a time line without lanes."""
    return TimeLine(
        from_ns=at(from_ms),
        to_ns=at(to_ms),
        lanes=(),
        flows=(),
        notables=(),
        is_sampled=is_sampled,
        snapshot=records.snapshot((), ()),
        holds=timeline_holds.holds_by_lock(waits, samples or []),
    )


def shares(found: WaitHolders | None) -> list[tuple[int, float]]:
    """Return the threads with their milliseconds, in the order of the result."""
    assert found is not None
    return [(share.tid, share.held_ns / MS) for share in found.shares]


def held(tid: int, milliseconds: float | None) -> dict[int, Held]:
    seconds = None if milliseconds is None else milliseconds / 1000
    return {tid: Held(lock=1, site=7, duration_s=seconds)}


def test_the_largest_share_comes_first_though_another_thread_released_last() -> None:
    waits = timed(record(1, 0, 0, 190), record(2, 20, 170.5, 0.5), record(3, 10, 182, 1))
    found = timeline_holds.holders_during(waits[1], line(waits))
    assert shares(found) == [(1, 180), (2, 0.5)]
    assert found is not None
    assert (found.wait_ns, found.unrecorded_ns) == (182 * MS, 1.5 * MS)
    assert not found.is_part


def test_holds_of_other_locks_and_of_other_times_do_not_count() -> None:
    waits = timed(
        record(1, 0, 0, 50, lock=2), record(1, 100, 0, 5), record(4, 0, 0, 10), record(3, 10, 80)
    )
    wait = next(one for one in waits if one.record.tid == 3)
    assert timeline_holds.holders_during(wait, line(waits)) is None


def test_several_holds_of_one_thread_are_added() -> None:
    waits = timed(*(record(1, number * 20, 0, 15) for number in range(5)), record(3, 0, 100))
    wait = next(one for one in waits if one.record.tid == 3)
    found = timeline_holds.holders_during(wait, line(waits))
    assert shares(found) == [(1, 75)]
    assert found is not None
    assert found.unrecorded_ns == 25 * MS


def test_readers_have_a_lock_together() -> None:
    readers = [record(tid, 0, 0, 90, kind=Kind.RWLOCK, is_shared=True) for tid in (1, 2)]
    waits = timed(*readers, record(3, 10, 90, kind=Kind.RWLOCK))
    found = timeline_holds.holders_during(waits[2], line(waits))
    assert shares(found) == [(1, 80), (2, 80)]
    assert found is not None
    assert found.unrecorded_ns == 10 * MS
    assert all(share.is_shared for share in found.shares)


def test_a_hold_that_scans_show_is_known_up_to_the_last_of_them() -> None:
    waits = timed(record(3, 10, 390))
    scans = [scan(100, 1, holds=held(1, 95)), scan(300, 1, holds=held(1, 295)), scan(500, 1)]
    found = timeline_holds.holders_during(waits[0], line(waits, scans))
    assert shares(found) == [(1, 290)]
    assert found is not None
    assert found.shares[0].is_lower_bound
    assert found.shares[0].site == 7


def test_a_hold_with_a_record_is_not_known_from_scans_too() -> None:
    waits = timed(record(1, 0, 0, 300), record(3, 10, 390))
    late = [scan(307, 1, holds=held(1, 304)), scan(500, 1)]
    found = timeline_holds.holders_during(waits[1], line(waits, late))
    assert shares(found) == [(1, 290)]
    assert found is not None
    assert not found.shares[0].is_lower_bound


def test_a_hold_after_a_recorded_one_is_known_from_scans() -> None:
    waits = timed(record(1, 0, 0, 20), record(3, 10, 690))
    found = timeline_holds.holders_during(waits[1], line(waits, [scan(500, 1, holds=held(1, 400))]))
    assert shares(found) == [(1, 410)]


def test_a_hold_of_unknown_age_counts_in_samples_alone() -> None:
    waits = timed(record(3, 0, 300))
    exact = [scan(time, 1, holds=held(1, None)) for time in (100, 200)]
    found = timeline_holds.holders_during(waits[0], line(waits, exact))
    assert found is not None
    assert found.shares == ()
    assert found.seen == HoldersSeen(scans=2, held=2, tids=(1,), are_readers=False)
    sampled = [replace(one, is_sampled=True) for one in [*exact, scan(300, 1)]]
    found = timeline_holds.holders_during(waits[0], line(waits, sampled, is_sampled=True))
    assert shares(found) == [(1, 150)]
    assert found is not None
    assert found.is_estimate
    assert not found.shares[0].is_lower_bound


def test_of_a_wait_from_before_the_time_line_the_part_in_it_counts() -> None:
    """The holds of the part before were not read: another thread may have had the lock longer."""
    waits = timed(record(1, 600, 0, 90), record(3, 0, 700))
    wait = next(one for one in waits if one.record.tid == 3)
    found = timeline_holds.holders_during(wait, line(waits, from_ms=600))
    assert found is not None
    assert (found.wait_ns, found.is_part) == (100 * MS, True)
    assert shares(found) == [(1, 90)]


def test_a_wait_from_before_the_time_line_counts_whole_if_the_holds_cover_it() -> None:
    waits = timed(record(1, -5, 0, 650), record(3, 0, 700))
    found = timeline_holds.holders_during(waits[1], line(waits, from_ms=600))
    assert found is not None
    assert (found.wait_ns, found.is_part) == (700 * MS, False)
    assert shares(found) == [(1, 645)]


def test_a_wait_that_goes_on_ends_where_its_holder_was_last_seen() -> None:
    waits = [replace(one, is_open=True) for one in timed(record(3, 10, 290))]
    scans = [scan(299, 1, holds=held(1, 295))]
    found = timeline_holds.holders_during(waits[0], line(waits, scans))
    assert found is not None
    assert not found.shares[0].is_lower_bound


def test_a_wait_for_work_has_no_holders() -> None:
    holder = timed(record(1, 0, 0, 90, kind=Kind.SEM))
    idle = timed(record(3, 10, 50, kind=Kind.SEM), idle=True)
    assert timeline_holds.holders_during(idle[0], line([*holder, *idle])) is None


def test_the_activity_is_that_of_the_last_scan_in_the_hold() -> None:
    def activity(tid: int, call: str) -> dict[int, ThreadActivity]:
        return {1: ThreadActivity(tid=tid, doing=ActivityState.BLOCKED, call=call)}

    waits = timed(record(1, 0, 0, 300), record(2, 20, 281, 100), record(3, 10, 391))
    scans = [
        replace(scan(50, 1), activities=activity(1, "read")),
        replace(scan(250, 1), activities=activity(1, "fsync")),
        replace(scan(350, 1), activities=activity(2, "write")),
        replace(scan(450, 1), activities=activity(1, "poll")),
    ]
    wait = next(one for one in waits if one.record.tid == 3)
    found = timeline_holds.holders_during(wait, line(waits, scans))
    assert found is not None
    calls = [share.activity.call for share in found.shares if share.activity is not None]
    assert calls == ["fsync", "write"]


def test_the_shares_are_those_of_the_plain_rule() -> None:
    """Compare with all moments of the wait, one after the other."""
    for seed in seeds(25):
        waits, chosen = some_waits(seed), random.Random(seed)
        found_line = line(waits, from_ms=-2000, to_ms=3000)
        for one in waits:
            wait = one.record
            found = timeline_holds.holders_during(one, found_line)
            if found is None:
                continue
            known = [other.record for other in waits if other.record.lock == wait.lock]
            assert (
                sum(share.held_ns for share in found.shares) >= wait.wait_ns - found.unrecorded_ns
            )
            for _ in range(10):
                time_ns = chosen.randrange(wait.began_ns, max(wait.began_ns + 1, wait.got_ns))
                for other in known:
                    if other.hold_ns and other.got_ns <= time_ns < other.end_ns:
                        assert other.tid in {share.tid for share in found.shares}
            assert all(0 < share.held_ns <= wait.wait_ns for share in found.shares)
