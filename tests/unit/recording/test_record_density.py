"""Time lines of busy programs: sums of counters where records are too many, or lost."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import records
from unit.builders.time_lines import MS, FixedPast, at, record

from locktop.collector.analysis import heat_map
from locktop.collector.analysis.timeline import cells, state_sums
from locktop.collector.errors import LocktopError
from locktop.collector.model import (
    Kind,
    LaneState,
    Snapshot,
    ThreadState,
    TimeLine,
    WaitRecord,
    Window,
)
from locktop.collector.recording.time_lines import TimeLineReader

#: Milliseconds between two scans, and that the thread waits for lock 1 meanwhile.
STEP, WAITED = 100, 30


def scan(number: int, **changes: object) -> Snapshot:
    """Return a scan whose counters have grown in each step before."""
    waited_s = number * WAITED / 1e3
    thread = records.thread(1, "worker", ThreadState.RUNNING, wait_s={Kind.MUTEX: waited_s})
    locks = (records.lock(1, "journal", wait_s=waited_s), records.lock(2, "cache"))
    return records.snapshot((thread,), locks, **changes)


def busy(steps: int = 10, waits: int = 30, **changes: object) -> FixedPast:
    """Return a past with so many waits of 1 ms in each step."""
    found: list[WaitRecord] = [
        record(1, STEP * step + number * STEP / waits, 1)
        for step in range(steps)
        for number in range(waits)
    ]
    scans = {at(STEP * step): scan(step, **changes) for step in range(steps + 1)}
    return FixedPast(scans, found)


def read(past: FixedPast, most: int, to_ms: int = 1000) -> TimeLine:
    reader = TimeLineReader(past, takes_counters=True)
    return reader.read(at(0), at(to_ms), max_records=most)


def test_few_records_are_read_one_by_one() -> None:
    line = read(busy(), 300)
    assert line.counted == ()
    assert len(line.lanes[0].waits) == 300


def test_too_many_records_become_exact_sums_of_the_whole_span() -> None:
    line = read(busy(), 299)
    assert [(span.from_ns, span.to_ns) for span in line.counted] == [
        (at(STEP * step), at(STEP * step + STEP)) for step in range(10)
    ]
    (lane,) = line.lanes
    assert (lane.waits, lane.spans) == ((), ())
    assert lane.wait_ns == 10 * WAITED * MS
    window = Window(from_ns=at(0), to_ns=at(1000), count=7)
    assert sum(heat_map.waits_by_lock(line.lanes, window, line.counted)[1]) == 10 * WAITED * MS
    assert sum(heat_map.waits_by_thread(line.lanes, window)[1]) == 10 * WAITED * MS
    parts = [state_sums(cell) for cell in cells(lane.spans, window, lane.counted)]
    # All of the time has a state.
    assert sum(sum(part.values()) for part in parts) == 1000 * MS
    assert {state for part in parts for state in part} == {LaneState.WAITING, LaneState.RUNNING}


def test_few_scans_have_the_same_sums_of_the_whole_span() -> None:
    reader = TimeLineReader(busy(40), takes_counters=True)
    line = reader.read(at(0), at(4000), max_records=10, max_scans=5)
    assert [(span.from_ns, span.to_ns) for span in line.counted] == [
        (at(1000 * step), at(1000 * step + 1000)) for step in range(4)
    ]
    assert line.lanes[0].wait_ns == 40 * WAITED * MS
    assert line.is_coarse
    assert not reader.read(at(0), at(4000), max_records=10).is_coarse
    assert not reader.read(at(0), at(4000), max_records=10, max_scans=41).is_coarse


def test_few_scans_of_a_sampled_process_are_its_newest() -> None:
    past = busy(40)
    past.snapshots = {at_ns: records.sampled(one) for at_ns, one in past.snapshots.items()}
    reader = TimeLineReader(past, takes_counters=True)
    line = reader.read(at(0), at(4000), max_scans=5)
    assert (line.from_ns, line.to_ns, line.is_coarse) == (at(3600), at(4000), True)
    assert reader.read(at(0), at(4000)).from_ns == at(0)


def test_only_the_busy_part_of_a_span_is_counted() -> None:
    past = busy(waits=1)
    past.found += [record(1, 500 + number / 10, 0.05) for number in range(1000)]
    past.found.sort(key=lambda one: one.began_ns)
    line = read(past, 500)
    assert [(span.from_ns, span.to_ns) for span in line.counted] == [(at(500), at(600))]
    (lane,) = line.lanes
    assert [wait.record.began_ns for wait in lane.waits] == [
        at(STEP * step) for step in range(10) if step != 5
    ]
    assert all(span.to_ns <= at(500) or span.from_ns >= at(600) for span in lane.spans)


def test_a_long_wait_of_the_part_beside_is_not_in_the_sums_twice() -> None:
    past = busy(waits=1)
    past.found[0] = record(1, 400, 150)
    past.found += [record(1, 500 + number / 10, 0.05) for number in range(1000)]
    past.found.sort(key=lambda one: one.began_ns)
    line = read(past, 500)
    (lane,) = line.lanes
    window = Window(from_ns=at(500), to_ns=at(600), count=1)
    (cell,) = cells(lane.spans, window, lane.counted)
    assert state_sums(cell)[LaneState.WAITING] == WAITED * MS


def test_lost_records_are_made_up_for_by_counters() -> None:
    past = busy(waits=10)
    for step, time_ns in enumerate(past.times_ns()):
        past.snapshots[time_ns] = replace(past.snapshots[time_ns], lost_events=step * 50)
    line = read(past, 1000)
    assert len(line.counted) == 10
    assert line.lost_records == 0
    # A few scans say less than the records that are left.
    near = read(past, 1000, to_ms=200)
    assert (near.counted, near.lost_records) == ((), 100)
    assert len(read(past, 1000, to_ms=300).counted) == 3


def test_counters_that_begin_anew_are_no_sums() -> None:
    past = busy()
    past.snapshots[at(500)] = replace(past.snapshots[at(500)], interval_s=0.0)
    line = read(past, 10)
    assert at(400) not in [span.from_ns for span in line.counted]
    assert len(line.lanes[0].waits) == 30


def test_sampled_processes_have_no_exact_counters() -> None:
    past = busy()
    past.snapshots = {at_ns: records.sampled(one) for at_ns, one in past.snapshots.items()}
    assert read(past, 10).counted == ()


def test_the_lock_of_a_counted_wait_is_known_if_there_is_only_one() -> None:
    (lane,) = read(busy(), 10).lanes
    assert {lock for span in lane.counted for state, lock in span.sums if lock} == {1}
    past = busy()
    for step, time_ns in enumerate(past.times_ns()):
        locks = (
            records.lock(1, "journal", wait_s=step * 0.02),
            records.lock(2, "cache", wait_s=step * 0.01),
        )
        past.snapshots[time_ns] = replace(past.snapshots[time_ns], locks=locks)
    line = read(past, 10)
    assert {lock for span in line.lanes[0].counted for _, lock in span.sums} == {0}
    assert {lock for span in line.counted for _, lock in span.sums} == {1, 2}


def test_the_callers_of_a_busy_span_come_from_counters_between_scans() -> None:
    reader = TimeLineReader(busy(), 10, takes_counters=True)
    snapshot = reader.read_span(at(150), at(450))
    assert [round(lock.wait_s, 6) for lock in snapshot.locks if lock.wait_s] == [0.12]
    assert snapshot.session_s is not None
    assert reader.read_span(at(150), at(450), {2}).locks[0].name == "cache"


def test_a_reading_tells_how_far_it_is_and_can_be_ended() -> None:
    parts: list[float] = []
    TimeLineReader(busy(), takes_counters=True).read(at(0), at(1000), parts.append)
    assert parts == sorted(parts)
    assert parts[0] == 0.0

    def end(part: float) -> None:
        raise LocktopError("enough")

    with pytest.raises(LocktopError, match="enough"):
        TimeLineReader(busy(), takes_counters=True).read(at(0), at(1000), end)
