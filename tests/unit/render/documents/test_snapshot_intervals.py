"""Figures that were added between two scans, also where a scan did not measure a figure."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import records

from locktop.collector.model import Kind, ThreadState, WaitStack
from locktop.collector.render.documents import snapshot_intervals

#: Figures of an interval that samples do not show.
NOT_SAMPLED = ("acquisitions", "trylock_failed", "signals", "hold_s")

BEFORE = records.lock(
    1, "m", acquisitions=10, contended=4, trylock_failed=1, signals=2, hold_timed=3, wait_s=1.0,
    hold_s=2.0,
)  # fmt: skip
AFTER = replace(
    BEFORE, acquisitions=15, contended=6, trylock_failed=4, signals=2, hold_timed=5, wait_s=1.5,
    hold_s=5.0,
)  # fmt: skip


def test_an_interval_of_a_lock_is_the_difference() -> None:
    added = snapshot_intervals.lock_interval(AFTER, BEFORE)
    assert [getattr(added, name) for name in NOT_SAMPLED] == [5, 3, 0, 3.0]
    assert (added.contended, added.hold_timed, added.wait_s, added.idle_s) == (2, 2, 0.5, 0.0)


def test_an_interval_of_a_new_lock_has_all_its_figures() -> None:
    added = snapshot_intervals.lock_interval(AFTER, None)
    assert [getattr(added, name) for name in NOT_SAMPLED] == [15, 4, 2, 5.0]


def test_a_lock_with_the_id_of_an_earlier_one_begins_anew() -> None:
    added = snapshot_intervals.lock_interval(BEFORE, AFTER)
    assert [getattr(added, name) for name in NOT_SAMPLED] == [0, 0, 0, 0]


def test_what_was_not_measured_has_no_interval() -> None:
    before, after = records.sampled(records.snapshot((), (BEFORE, AFTER))).locks
    for first in (before, BEFORE, None):
        added = snapshot_intervals.lock_interval(after, first)
        assert [getattr(added, name) for name in NOT_SAMPLED] == [None] * len(NOT_SAMPLED)
    added = snapshot_intervals.lock_interval(after, before)
    assert (added.contended, added.hold_timed, added.wait_s) == (2, 0, 0.5)
    assert snapshot_intervals.lock_interval(AFTER, before).acquisitions is None


def test_the_interval_of_a_class_is_none_if_that_of_a_lock_is() -> None:
    other = replace(AFTER, id=2, signals=None)
    added = snapshot_intervals.class_interval((AFTER, other), {1: BEFORE, 2: BEFORE})
    assert [getattr(added, name) for name in NOT_SAMPLED] == [10, 6, None, 6.0]
    assert (added.contended, added.hold_timed, added.wait_s) == (4, 4, 1.0)


def test_percentiles_of_an_interval_are_those_of_the_difference() -> None:
    early, late = records.histogram(*[500] * 90), records.histogram(*[500] * 90, 40_000, 90_000)
    before = replace(BEFORE, wait_max_s=1.0, wait_histogram=early, hold_histogram=early)
    after = replace(before, wait_histogram=late)
    added = snapshot_intervals.lock_interval(after, before)
    assert added.wait_p50_s == records.histogram(40_000).percentile_s(50)
    assert added.wait_p99_s == records.histogram(90_000).percentile_s(50)
    assert (added.hold_p50_s, added.hold_p99_s) == (None, None)
    whole = snapshot_intervals.lock_interval(after, None)
    assert whole.wait_p50_s == records.histogram(500).percentile_s(50)
    other = replace(after, id=2)
    both = snapshot_intervals.class_interval((after, other), {1: before})
    assert both.wait_p50_s == whole.wait_p50_s
    assert both.wait_p99_s == added.wait_p99_s


def test_an_interval_of_a_thread() -> None:
    before = records.thread(
        1, "w", ThreadState.RUNNING, wait_s={Kind.MUTEX: 1.0}, cpu_s=2.0, acquisitions=5,
        contended=1,
    )  # fmt: skip
    after = replace(
        before, wait_s={Kind.MUTEX: 1.5, Kind.COND: 2.0}, cpu_s=2.5, acquisitions=8, contended=1
    )
    added = snapshot_intervals.thread_interval(after, before)
    assert added.wait_s == {Kind.MUTEX: 0.5, Kind.COND: 2.0}
    assert (added.cpu_s, added.acquisitions, added.contended) == (0.5, 3, 0)
    first, second = records.sampled(records.snapshot((before, after), ())).threads
    for earlier in (first, None):
        added = snapshot_intervals.thread_interval(second, earlier)
        assert (added.acquisitions, added.contended) == (None, None)


def test_the_added_idle_wait_of_a_lock_with_both_is_that_of_its_idle_stacks() -> None:
    stacks = (WaitStack(1, 1, 1.0, idle=True), WaitStack(2, 1, 2.0))
    before = records.some_idle(replace(BEFORE, wait_s=3.0, wait_stacks=stacks), 1.0)
    grown = (replace(stacks[0], wait_s=1.25), replace(stacks[1], wait_s=4.0))
    after = records.some_idle(replace(before, wait_s=5.25, wait_stacks=grown), 1.25)
    added = snapshot_intervals.lock_interval(after, before)
    assert (added.wait_s, added.idle_s) == (2.25, 0.25)
