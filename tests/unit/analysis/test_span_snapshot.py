"""The waits of a span as a snapshot, for call trees."""

from __future__ import annotations

import pytest
from unit.builders import records
from unit.builders.time_lines import at, record, timed

from locktop.collector.analysis.span_snapshot import span_snapshot
from locktop.collector.model import Frame, Kind

SNAPSHOT = records.snapshot((), (records.lock(1, "journal"), records.lock(2, "queue", Kind.COND)))


def test_a_wait_counts_with_its_part_in_the_span() -> None:
    waits = timed(
        record(1, 0, 20, stack=1, holder=9), record(2, 5, 10, stack=2), record(3, 90, 5, stack=1)
    )
    found = span_snapshot(SNAPSHOT, waits, at(10), at(50))
    assert found.duration_s == pytest.approx(0.04)
    lock = found.locks[0]
    assert (lock.name, lock.contended) == ("journal", 2)
    assert lock.wait_s == pytest.approx(0.015)
    assert [(one.stack, one.count, round(one.wait_s, 6)) for one in lock.wait_stacks] == [
        (1, 1, 0.01), (2, 1, 0.005),
    ]  # fmt: skip
    assert [(one.tid, round(one.wait_s, 6)) for one in lock.blame] == [(9, 0.01), (0, 0.005)]
    assert found.stacks == SNAPSHOT.stacks


def test_waits_for_work_are_apart() -> None:
    waits = [*timed(record(1, 0, 20)), *timed(record(2, 0, 30, lock=2), idle=True)]
    found = span_snapshot(SNAPSHOT, waits, at(0), at(50))
    assert [(lock.id, lock.idle, round(lock.idle_s, 6)) for lock in found.locks] == [
        (1, False, 0.0), (2, True, 0.03),
    ]  # fmt: skip


def test_one_lock_alone_counts_and_an_unknown_one_has_a_name() -> None:
    waits = timed(record(1, 0, 20), record(2, 0, 30, lock=77))
    found = span_snapshot(SNAPSHOT, waits, at(0), at(50), locks={77})
    assert [lock.name for lock in found.locks] == ["lock 77"]


def test_the_newest_frames_of_a_stack_count() -> None:
    old = {1: (Frame(1, "old", None, None, "m", 1),), 99: (Frame(2, "gone", None, None, "m", 2),)}
    found = span_snapshot(SNAPSHOT, [], at(0), at(50), old)
    assert found.stacks[1] == SNAPSHOT.stacks[1]
    assert found.stacks[99] == old[99]
