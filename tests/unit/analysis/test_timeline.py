"""Lanes, cells, hand-overs and events of a time line."""

from __future__ import annotations

import random

from msgspec.structs import replace
from support.seeds import seeds
from unit.builders.time_lines import BEGIN_NS, MS, at, record, scan, some_waits, timed

from locktop.collector.analysis import timeline
from locktop.collector.model import Held, Kind, LaneSpan, LaneState, TimedWait, Window

WAITS, IDLE, HOLDS, RUNS, UNKNOWN = (
    LaneState.WAITING,
    LaneState.IDLE,
    LaneState.HOLDING,
    LaneState.RUNNING,
    LaneState.UNKNOWN,
)


def spans_of(found: tuple[timeline.Lane, ...], tid: int) -> list[tuple[float, float, str, int]]:
    lane = next(lane for lane in found if lane.tid == tid)
    return [
        ((s.from_ns - BEGIN_NS) / MS, (s.to_ns - BEGIN_NS) / MS, s.state, s.lock)
        for s in lane.spans
    ]


def test_a_lane_tells_the_wait_the_hold_and_the_rest() -> None:
    scans = [scan(0, 1), scan(100, 1)]
    found = timeline.lanes(timed(record(1, 10, 20, 30, lock=7)), scans, at(0), at(100))
    assert spans_of(found, 1) == [
        (0, 10, RUNS, 0), (10, 30, WAITS, 7), (30, 60, HOLDS, 7), (60, 100, RUNS, 0),
    ]  # fmt: skip
    assert found[0].wait_ns == 20 * MS
    assert found[0].name == "t1"


def test_the_lane_with_the_longest_wait_comes_first() -> None:
    waits = timed(record(1, 0, 10), record(2, 0, 30), record(3, 0, 20))
    assert [lane.tid for lane in timeline.lanes(waits, [], at(0), at(100))] == [2, 3, 1]


def test_a_wait_inside_a_hold_or_inside_another_wait_counts_once() -> None:
    waits = timed(record(1, 0, 10, 80, lock=1), record(1, 20, 10, 5, lock=2))
    waits += timed(record(1, 22, 4, lock=3))
    found = timeline.lanes(waits, [], at(0), at(100))
    assert spans_of(found, 1) == [
        (0, 10, WAITS, 1), (10, 20, HOLDS, 1), (20, 22, WAITS, 2), (22, 26, WAITS, 3),
        (26, 30, WAITS, 2), (30, 35, HOLDS, 2), (35, 90, HOLDS, 1), (90, 100, UNKNOWN, 0),
    ]  # fmt: skip
    assert found[0].wait_ns == 20 * MS


def test_contention_goes_before_a_wait_for_work() -> None:
    waits = [TimedWait(record(1, 0, 50, kind=Kind.COND, lock=5), idle=True)]
    waits += timed(record(1, 40, 20, lock=1))
    found = timeline.lanes(waits, [], at(0), at(60))
    assert spans_of(found, 1) == [(0, 40, IDLE, 5), (40, 60, WAITS, 1)]


def test_what_goes_over_the_borders_is_cut() -> None:
    found = timeline.lanes(timed(record(1, -50, 60, 500)), [], at(0), at(100))
    assert spans_of(found, 1) == [(0, 10, WAITS, 1), (10, 100, HOLDS, 1)]


def test_a_hold_that_a_scan_shows_began_at_its_age() -> None:
    held = Held(lock=4, site=0, duration_s=0.03)
    scans = [scan(0, 1), scan(50, 1, holds={1: held}), scan(100, 1)]
    found = timeline.lanes([], scans, at(0), at(100))
    assert spans_of(found, 1) == [(0, 20, RUNS, 0), (20, 50, HOLDS, 4), (50, 100, RUNS, 0)]


def test_a_hold_of_unknown_age_lasts_to_the_neighbouring_scans() -> None:
    held = Held(lock=4, site=0, duration_s=None)
    scans = [scan(0, 1), scan(50, 1, holds={1: held}), scan(100, 1)]
    found = timeline.lanes([], scans, at(0), at(100))
    assert spans_of(found, 1) == [(0, 25, RUNS, 0), (25, 75, HOLDS, 4), (75, 100, RUNS, 0)]


def test_a_thread_is_unknown_where_no_scan_shows_it() -> None:
    scans = [scan(0, 1), scan(50, 1, 2), scan(100, 1, 2)]
    found = timeline.lanes([], scans, at(0), at(100))
    assert spans_of(found, 2) == [(0, 25, UNKNOWN, 0), (25, 100, RUNS, 0)]


def test_nobody_scanned_before_the_first_scan_of_another_sender() -> None:
    """A listener has the scans of one sender after those of another one."""
    first = replace(scan(80, 1), is_first=True)
    scans = [scan(0, 1), scan(20, 1), first, scan(100, 1)]
    found = timeline.lanes([], scans, at(0), at(100))
    assert spans_of(found, 1) == [(0, 20, RUNS, 0), (20, 80, UNKNOWN, 0), (80, 100, RUNS, 0)]


def test_spans_lie_side_by_side_and_fill_the_time() -> None:
    for seed in seeds(25):
        begin, end = at(0), at(1000)
        for lane in timeline.lanes(some_waits(seed), [scan(300, 1, 9)], begin, end):
            assert lane.spans[0].from_ns == begin
            assert lane.spans[-1].to_ns == end
            for one, after in zip(lane.spans, lane.spans[1:], strict=False):
                assert one.from_ns < one.to_ns == after.from_ns
                assert (one.state, one.lock) != (after.state, after.lock)


def test_each_moment_has_the_state_of_its_most_important_wait() -> None:
    """Compare with the plain rule, one moment after the other."""
    for seed in seeds(25):
        waits, chosen = some_waits(seed), random.Random(seed)
        for lane in timeline.lanes(waits, [], at(0), at(1000)):
            own = [one for one in waits if one.record.tid == lane.tid]
            for _ in range(40):
                time_ns = chosen.randrange(at(0), at(1000))
                span = next(one for one in lane.spans if one.from_ns <= time_ns < one.to_ns)
                assert span.state is _state_at(own, time_ns)


def _state_at(waits: list[TimedWait], time_ns: int) -> LaneState:
    now = [one for one in waits if one.record.began_ns <= time_ns < one.record.got_ns]
    if any(not one.idle for one in now):
        return WAITS
    if now:
        return IDLE
    held = any(one.record.got_ns <= time_ns < one.record.end_ns for one in waits)
    return HOLDS if held else UNKNOWN


def test_the_sums_over_cells_are_those_of_the_spans_at_every_zoom_level() -> None:
    for seed in seeds(25):
        chosen = random.Random(seed)
        lanes = timeline.lanes(some_waits(seed), [scan(400, 1, 2, 3)], at(0), at(1000))
        for _ in range(12):
            begin = chosen.randrange(at(-100), at(900))
            end = begin + chosen.choice((1, 7, 61, MS, 333 * MS, chosen.randrange(1, 1200 * MS)))
            window = Window(begin, end, chosen.choice((1, 2, 57, 80, 200, 1000)))
            for lane in lanes:
                found = timeline.cells(lane.spans, window)
                assert len(found) == window.count
                assert _sums(found) == _clipped_sums(lane.spans, begin, end)
                for number, cell in enumerate(found):
                    inside = _overlap(
                        at(0), at(1000), window.edge_ns(number), window.edge_ns(number + 1)
                    )
                    assert sum(cell.values()) == inside
                    assert all(ns > 0 for ns in cell.values())


def _sums(found: list[dict[timeline.CellKey, int]]) -> dict[timeline.CellKey, int]:
    sums: dict[timeline.CellKey, int] = {}
    for cell in found:
        for key, ns in cell.items():
            sums[key] = sums.get(key, 0) + ns
    return sums


def _clipped_sums(spans: tuple[LaneSpan, ...], begin: int, end: int) -> dict[timeline.CellKey, int]:
    sums: dict[timeline.CellKey, int] = {}
    for span in spans:
        part = _overlap(span.from_ns, span.to_ns, begin, end)
        if part:
            sums[span.state, span.lock] = sums.get((span.state, span.lock), 0) + part
    return sums


def _overlap(one: int, one_end: int, other: int, other_end: int) -> int:
    return max(0, min(one_end, other_end) - max(one, other))


def test_every_moment_of_a_window_is_between_the_edges_of_its_cell() -> None:
    chosen = random.Random(5)
    for _ in range(500):
        window = Window(at(0), at(0) + chosen.randint(1, 1000), chosen.randint(1, 1500))
        time_ns = chosen.randrange(window.from_ns, window.to_ns)
        cell = window.cell_at(time_ns)
        assert window.edge_ns(cell) <= time_ns < window.edge_ns(cell + 1)


def test_the_last_release_before_the_wait_ended_woke_the_thread() -> None:
    waits = timed(
        record(1, 0, 0, 50),
        record(2, 10, 41, 9, holder=1),  # got at 51, released at 60
        record(3, 20, 41, 5, holder=1),  # got at 61
    )
    found = [(f.from_tid, f.released_ns, f.to_tid, f.woken_ns) for f in timeline.flows(waits)]
    assert found == [(1, at(50), 2, at(51)), (2, at(60), 3, at(61))]


def test_without_a_recorded_release_the_holder_is_known_alone() -> None:
    flow = timeline.flows(timed(record(2, 10, 40, holder=9)))[0]
    assert (flow.from_tid, flow.released_ns, flow.to_tid) == (9, None, 2)
    assert timeline.flows(timed(record(2, 10, 40))) == ()


def test_readers_that_got_a_rwlock_together_did_not_wake_each_other() -> None:
    readers = [record(tid, 10, 40 + tid / 100, 0.001, holder=9, kind=Kind.RWLOCK) for tid in (1, 2)]
    assert [flow.from_tid for flow in timeline.flows(timed(*readers))] == [9, 9]
    writer = record(9, 0, 0, 50, kind=Kind.RWLOCK)
    assert [f.released_ns for f in timeline.flows(timed(*readers, writer))] == [at(50)] * 2


def test_a_wait_for_work_a_timeout_and_an_open_wait_have_no_hand_over() -> None:
    holder = record(1, 0, 0, 45)
    other = record(2, 10, 40, kind=Kind.COND)
    late = record(2, 10, 40, timed_out=True)
    assert not timeline.flows([*timed(holder), *timed(other, idle=True)])
    assert not timeline.flows(timed(holder, late))
    still = [replace(one, is_open=True) for one in timed(record(2, 10, 40, holder=1))]
    assert not timeline.flows([*timed(holder), *still])


def test_events_are_found_in_both_directions() -> None:
    waits = timed(record(1, 10, 5), record(1, 30, 0, 5), record(1, 40, 20))
    found = timeline.events([*waits, *timed(record(1, 20, 2, kind=Kind.COND), idle=True)])
    assert [event.time_ns for event in found] == [at(10), at(15), at(40), at(60)]
    first = timeline.event_after(found, at(0))
    assert first is not None
    assert first.time_ns == at(10)
    later = timeline.event_after(found, at(15))
    assert later is not None
    assert later.time_ns == at(40)
    before = timeline.event_before(found, at(15))
    assert before is not None
    assert before.time_ns == at(10)
    assert timeline.event_before(found, at(10)) is None
    assert timeline.event_after(found, at(60)) is None


def test_the_wait_in_a_cell_is_the_longest_in_contention() -> None:
    idle = timed(record(1, 0, 90, kind=Kind.COND, lock=4), idle=True)
    brief, long = timed(record(1, 91, 1, lock=2)), timed(record(1, 93, 3, lock=3))
    found = timeline.wait_in([*idle, *brief, *long], at(0), at(100))
    assert found is not None
    assert found.record.lock == 3
    assert timeline.wait_in(brief, at(0), at(50)) is None
