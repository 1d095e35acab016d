"""Sums of a heat map: exact in each cell, whatever the rows are."""

from __future__ import annotations

import random

from support.seeds import seeds
from unit.builders.time_lines import BEGIN_NS, MS, at, record, some_waits, timed

from locktop.collector.analysis import heat_map, timeline
from locktop.collector.model import LaneState, Window

FIRST_S = BEGIN_NS // 10**9


def test_a_lock_has_a_row_with_the_waits_of_all_threads() -> None:
    waits = timed(record(1, 10, 20), record(2, 15, 20), record(3, 0, 5, lock=2))
    lanes = timeline.lanes(waits, [], at(0), at(40))
    window = Window(at(0), at(40), 4)
    assert heat_map.waits_by_lock(lanes, window) == {
        1: [0, 15 * MS, 20 * MS, 5 * MS], 2: [5 * MS, 0, 0, 0],
    }  # fmt: skip
    assert heat_map.waits_by_thread(lanes, window) == {
        1: [0, 10 * MS, 10 * MS, 0], 2: [0, 5 * MS, 10 * MS, 5 * MS], 3: [5 * MS, 0, 0, 0],
    }  # fmt: skip


def test_waits_for_work_and_holds_are_no_heat() -> None:
    waits = [*timed(record(1, 0, 10, 20)), *timed(record(2, 0, 30), idle=True)]
    lanes = timeline.lanes(waits, [], at(0), at(40))
    assert heat_map.waits_by_lock(lanes, Window(at(0), at(40), 1)) == {1: [10 * MS]}


def test_offsets_of_one_second_are_rows() -> None:
    waits = timed(record(1, 50, 100), record(1, 1050, 100), record(1, 2950, 100, lock=2))
    lanes = timeline.lanes(waits, [], at(0), at(4000))
    assert heat_map.waits_by_offset(lanes, FIRST_S, 4, 10)[:2] == [
        [50 * MS, 50 * MS, 0, 50 * MS], [50 * MS, 50 * MS, 0, 0],
    ]  # fmt: skip
    of_two = heat_map.waits_by_offset(lanes, FIRST_S, 4, 10, {2})
    assert sum(map(sum, of_two)) == 100 * MS
    assert of_two[9] == [0, 0, 50 * MS, 0]


def test_all_kinds_of_rows_have_the_same_sum() -> None:
    for seed in seeds(10):
        chosen = random.Random(seed)
        lanes = timeline.lanes(some_waits(seed, span_ms=3000), [], at(0), at(3000))
        whole = sum(
            span.to_ns - span.from_ns
            for lane in lanes
            for span in lane.spans
            if span.state is LaneState.WAITING
        )
        window = Window(at(0), at(3000), chosen.randint(1, 300))
        assert sum(map(sum, heat_map.waits_by_lock(lanes, window).values())) == whole
        assert sum(map(sum, heat_map.waits_by_thread(lanes, window).values())) == whole
        parts = chosen.choice((7, 10, 20, 25, 50))
        grid = heat_map.waits_by_offset(lanes, FIRST_S, 3, parts)
        assert sum(map(sum, grid)) == whole
        assert len(grid) == parts
        of_locks = [
            heat_map.waits_by_offset(lanes, FIRST_S, 3, parts, {lock}) for lock in (1, 2, 3)
        ]
        assert sum(sum(map(sum, found)) for found in of_locks) == whole


def test_the_most_waited_row_comes_first() -> None:
    waits = timed(record(1, 0, 5, lock=3), record(2, 0, 7, lock=2), record(3, 0, 6, lock=1))
    lanes = timeline.lanes(waits, [], at(0), at(10))
    assert list(heat_map.waits_by_lock(lanes, Window(at(0), at(10), 3))) == [2, 1, 3]
