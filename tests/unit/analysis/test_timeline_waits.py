"""Waits from scans, and waits that scans and records show both."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import records
from unit.builders.time_lines import at, record, scan

from locktop.collector.analysis import timeline_waits
from locktop.collector.analysis.timeline_waits import join, waits_in_scans
from locktop.collector.model import (
    Kind,
    LaneState,
    ThreadState,
    TimedWait,
    Wait,
    WaitStack,
)


def wait(duration_ms: float, seq: int = 2, lock: int = 1, **more: object) -> Wait:
    made = Wait(lock, Kind.MUTEX, duration_ms / 1000, (9,), 1, 0x401100, seq)
    return replace(made, **more)


def times(found: list[TimedWait]) -> list[tuple[float, float]]:
    return [
        ((one.record.began_ns - at(0)) / 1e6, (one.record.got_ns - at(0)) / 1e6) for one in found
    ]


def test_one_wait_in_several_scans_is_one_wait() -> None:
    scans = [scan(100, 1, waits={1: wait(30)}), scan(200, 1, waits={1: wait(130)}), scan(300, 1)]
    found = waits_in_scans(scans)
    assert times(found) == [(70, 200)]
    assert not found[0].is_open
    assert found[0].record.is_sampled
    assert found[0].record.holder == 9


def test_another_number_or_another_lock_is_another_wait() -> None:
    scans = [
        scan(100, 1, waits={1: wait(30)}),
        scan(200, 1, waits={1: wait(20, seq=4)}),
        scan(300, 1, waits={1: wait(10, seq=4, lock=2)}),
    ]
    assert times(waits_in_scans(scans)) == [(70, 100), (180, 200), (290, 300)]


def test_a_wait_in_the_newest_scan_is_open() -> None:
    found = waits_in_scans([scan(100, 1), scan(200, 1, 2, waits={1: wait(50), 2: wait(10)})])
    assert [one.is_open for one in found] == [True, True]
    assert times(found) == [(150, 200), (190, 200)]


def test_an_estimate_begins_and_ends_between_two_scans() -> None:
    scans = [
        scan(0, 1, is_sampled=True),
        scan(100, 1, is_sampled=True, waits={1: wait(0)}),
        scan(200, 1, is_sampled=True, waits={1: wait(100)}),
        scan(300, 1, is_sampled=True),
    ]
    assert times(waits_in_scans(scans)) == [(50, 250)]


def test_a_later_scan_may_know_an_earlier_begin() -> None:
    # The first scan of a process has no time to ask the kernel about each thread.
    scans = [
        scan(1000, 1, is_sampled=True, waits={1: wait(0)}),
        scan(1100, 1, is_sampled=True, waits={1: wait(900)}),
        scan(1200, 1, is_sampled=True, waits={1: wait(1000)}),
    ]
    assert times(waits_in_scans(scans)) == [(200, 1200)]
    after_another = [scan(0, 1), scan(500, 1, waits={1: wait(0, seq=1)}), *scans]
    assert times(waits_in_scans(after_another))[1:] == [(750, 1200)]


def test_estimates_of_two_waits_in_a_row_do_not_overlap() -> None:
    scans = [
        scan(0, 1, is_sampled=True),
        scan(100, 1, is_sampled=True, waits={1: wait(0)}),
        scan(200, 1, is_sampled=True, waits={1: wait(80, seq=4)}),
        scan(300, 1, is_sampled=True),
    ]
    assert times(waits_in_scans(scans)) == [(50, 150), (150, 250)]


def test_a_recorded_wait_that_a_scan_met_counts_once() -> None:
    exact = TimedWait(record(1, 68, 150, 10), idle=False)
    seen = waits_in_scans([scan(100, 1, waits={1: wait(30)}), scan(300, 1)])
    assert join([exact], seen) == [exact]


def test_a_scan_that_took_long_shows_no_wait_beside_its_record() -> None:
    """On a busy machine the time of a scan may be that of its end, much later than its waits."""
    exact = TimedWait(record(1, 68, 1500, 10), idle=False)
    late = waits_in_scans([scan(770, 1, waits={1: wait(500)}), scan(1600, 1)])
    assert times(late) == [(270, 770)]
    assert join([exact], late) == [exact]
    next_wait = waits_in_scans([scan(1700, 1, waits={1: wait(50)})])
    assert join([exact], next_wait) == [exact, *next_wait]


def test_a_wait_without_its_record_counts_beside_another_record() -> None:
    before = TimedWait(record(1, 60, 5, 10), idle=False)
    of_another = TimedWait(record(2, 70, 500), idle=False)
    of_another_lock = TimedWait(record(1, 70, 500, lock=2), idle=False)
    seen = waits_in_scans([scan(100, 1, waits={1: wait(30)}), scan(300, 1, waits={1: wait(230)})])
    recorded = [before, of_another, of_another_lock]
    assert [one for one in join(recorded, seen) if one not in recorded] == seen


def test_records_are_classified_as_the_snapshot_classifies_the_lock() -> None:
    snapshot = records.snapshot(
        (),
        (
            records.lock(1, "a", wait_stacks=(WaitStack(5, 1, 1.0, idle=True),)),
            records.lock(2, "queue", Kind.COND),
            replace(records.lock(3, "units", Kind.SEM), idle=False),
        ),
    )
    made = [
        record(1, 0, 1, stack=5), record(1, 1, 1, stack=6),
        record(1, 2, 1, lock=2, kind=Kind.COND), record(1, 3, 1, lock=3, kind=Kind.SEM),
        record(1, 4, 1, lock=99, kind=Kind.COND), record(1, 5, 1, lock=99),
    ]  # fmt: skip
    verdicts = [one.idle for one in timeline_waits.classify(made, snapshot)]
    assert verdicts == [True, False, True, False, True, False]


def test_a_sample_keeps_what_a_lane_needs() -> None:
    snapshot = records.snapshot(
        (
            records.thread(1, "runs", ThreadState.RUNNABLE),
            records.thread(2, "sleeps", ThreadState.IDLE),
            records.thread(3, "over", ThreadState.OTHER, alive=False),
            records.thread(4, "killed", ThreadState.WAITING, alive=False, waiting_for=wait(5)),
        ),
        (),
    )
    found = timeline_waits.sample(snapshot, at(7))
    assert found.time_ns == at(7)
    assert found.is_first == (snapshot.interval_s == 0.0)
    assert timeline_waits.sample(replace(snapshot, interval_s=0.0), at(7)).is_first
    assert {tid: one.state for tid, one in found.threads.items()} == {
        1: LaneState.RUNNING, 2: LaneState.SLEEPING, 4: LaneState.SLEEPING,
    }  # fmt: skip
    assert found.threads[4].wait == wait(5)
