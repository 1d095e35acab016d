"""Changes between two sides: their figures, and which of them are worth a line."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from unit.builders.compared import MUTEX, figures, side

from locktop.collector.extensions.diff.compare import compare
from locktop.collector.extensions.diff.model import (
    FigureChange,
    Figures,
    LockChanges,
    LockGroup,
    LockMeasure,
    MatchKey,
    SideComparison,
)
from locktop.collector.model import Kind

OTHER = MatchKey(Kind.RWLOCK, "index #")
#: Pieces that differ a little from each other.
UNEVEN = (1.0, 1.1, 0.9, 1.05, 0.95, 1.2, 0.8, 1.0, 1.1, 0.9)


def uneven(wait_s: float, **more: float) -> list[Mapping[MatchKey, Figures]]:
    return [{MUTEX: figures(wait_s * share, **more)} for share in UNEVEN]


def changes_of(lock: LockChanges) -> dict[LockMeasure, FigureChange]:
    return {change.measure: change for change in lock.changes if not change.is_per_transaction}


def single(comparison: SideComparison) -> LockChanges:
    [lock] = comparison.locks
    return lock


def test_a_side_beside_itself_has_no_changes() -> None:
    same = side(uneven(0.2), {"done": 10})
    comparison = compare(same, same)
    assert not comparison.has_changes
    assert single(comparison).worthy == ()
    assert changes_of(single(comparison))[LockMeasure.WAIT].ratio == 1.0


def test_rates_and_means_of_a_lock() -> None:
    comparison = compare(
        side([{MUTEX: figures(0.2)}, {MUTEX: figures(0.4)}]),
        side([{MUTEX: figures(0.9, taken=200.0, contended=30.0, hold_s=0.6)}]),
    )
    changes = changes_of(single(comparison))
    assert {measure: (change.before, change.after) for measure, change in changes.items()} == {
        LockMeasure.WAIT: (pytest.approx(0.3), 0.9),
        LockMeasure.CONTENDED: (10.0, 30.0),
        LockMeasure.MEAN_WAIT: (pytest.approx(0.03), pytest.approx(0.03)),
        LockMeasure.ACQUISITIONS: (100.0, 200.0),
        LockMeasure.HOLD: (0.1, 0.6),
        LockMeasure.MEAN_HOLD: (0.001, pytest.approx(0.003)),
    }
    assert changes[LockMeasure.WAIT].ratio == pytest.approx(3.0)
    assert changes[LockMeasure.WAIT].interval is None
    assert LockMeasure.MEAN_WAIT not in [change.measure for change in single(comparison).worthy]
    assert changes_of(comparison.totals).keys() == changes.keys()


def test_a_change_of_recordings_has_an_interval() -> None:
    change = changes_of(single(compare(side(uneven(0.1)), side(uneven(0.3)))))[LockMeasure.WAIT]
    assert change.interval is not None
    assert 2.0 < change.interval.low < 3.0 < change.interval.high < 4.5
    assert change.is_worth_a_line


def test_a_difference_that_may_be_chance_is_worth_no_line() -> None:
    wild = [{MUTEX: figures(share)} for share in (0.1, 0.2, 1.9, 1.7, 0.4, 1.2, 0.3, 0.2, 1.5)]
    wilder = [{MUTEX: figures(share)} for share in (1.6, 1.9, 0.1, 2.9, 2.5, 0.2, 0.4, 2.0, 1.9)]
    change = changes_of(single(compare(side(wild), side(wilder))))[LockMeasure.WAIT]
    assert change.is_large
    assert change.may_be_chance
    assert not change.is_worth_a_line


@pytest.mark.parametrize(
    ("before", "after", "is_worth"),
    [
        (0.2, 0.215, False),  # 8 %
        (0.2, 0.23, True),
        (0.23, 0.2, True),
        (0.0001, 0.0009, False),  # a thousandth of a second a second
        (0.0001, 0.0012, True),
        (0.0, 0.5, True),
        (0.5, 0.0, True),
    ],
)
def test_small_changes_are_worth_no_line(before: float, after: float, is_worth: bool) -> None:
    comparison = compare(side([{MUTEX: figures(before)}]), side([{MUTEX: figures(after)}]))
    assert changes_of(single(comparison))[LockMeasure.WAIT].is_worth_a_line == is_worth


def test_a_mean_of_next_to_nothing_is_left_out() -> None:
    little = figures(0.0001, contended=1.0, hold_s=0.0001, taken=1.0)
    more = figures(0.0005, contended=1.0, hold_s=0.0005, taken=1.0)
    changes = changes_of(single(compare(side([{MUTEX: little}]), side([{MUTEX: more}]))))
    assert LockMeasure.MEAN_WAIT not in changes
    assert LockMeasure.MEAN_HOLD not in changes


def test_new_locks_and_locks_that_are_gone_are_listed() -> None:
    comparison = compare(side([{MUTEX: figures(0.2)}]), side([{OTHER: figures(0.1)}]))
    assert comparison.locks == ()
    assert [lock.key for lock in comparison.new] == [OTHER]
    assert [lock.key for lock in comparison.gone] == [MUTEX]
    assert comparison.new[0].counts == (0, 1)
    assert comparison.has_changes


def test_a_new_lock_that_nobody_used_is_not_listed() -> None:
    unused = figures(0.0, taken=0.0, contended=0.0, hold_s=0.0)
    comparison = compare(
        side([{MUTEX: figures(0.2)}]), side([{MUTEX: figures(0.2), OTHER: unused}])
    )
    assert comparison.new == ()
    assert not comparison.has_changes


def test_a_lock_that_was_unused_before_is_not_new() -> None:
    before = side([{}], locks={MUTEX: LockGroup(1, ("cache_mu",))})
    change = changes_of(single(compare(before, side([{MUTEX: figures(0.2)}]))))[LockMeasure.WAIT]
    assert (change.before, change.after, change.ratio) == (0.0, 0.2, None)
    assert change.is_worth_a_line


def test_the_largest_change_of_waiting_comes_first() -> None:
    keys = [MatchKey(Kind.MUTEX, name) for name in "abc"]
    before = {key: figures(0.5) for key in keys}
    after = dict(zip(keys, (figures(0.6), figures(0.1), figures(0.5)), strict=True))
    comparison = compare(side([before]), side([after]))
    assert [lock.name for lock in comparison.locks] == ["b", "a", "c"]


def test_totals_are_those_of_all_locks() -> None:
    piece = {MUTEX: figures(0.2), OTHER: figures(0.3)}
    totals = compare(side([piece]), side([piece])).totals
    assert totals.name == "all locks"
    assert changes_of(totals)[LockMeasure.WAIT].before == pytest.approx(0.5)
    assert changes_of(totals)[LockMeasure.ACQUISITIONS].before == 200.0


@pytest.mark.parametrize(
    ("names", "name"),
    [
        ((("shard 3",), ("shard 3",)), "shard 3"),
        ((("shard 3",), ("shard 4",)), "shard #"),
        ((("shard 1", "shard 2"), ()), "shard #"),
        ((("\x1b[2J\u202ex\nrm",), ("\x1b[2J\u202ex\nrm",)), "?[2J?x rm"),
    ],
)
def test_a_row_has_the_name_of_its_locks(
    names: tuple[tuple[str, ...], tuple[str, ...]], name: str
) -> None:
    key = MatchKey(Kind.MUTEX, "shard #")
    sides = [
        side([{key: figures(0.2)}], locks={key: LockGroup(len(of_side), of_side)})
        for of_side in names
    ]
    comparison = compare(*sides)
    [lock] = (*comparison.locks, *comparison.gone)
    assert lock.name == name


def test_marks_of_both_sides_are_transactions() -> None:
    comparison = compare(
        side([{MUTEX: figures(0.2)}], {"request # done": 50, "rare": 1}),
        side([{MUTEX: figures(0.9)}], {"request # done": 100, "other": 500}),
    )
    assert comparison.transaction == "request # done"
    totals = changes_of(comparison.totals)[LockMeasure.TRANSACTIONS]
    assert (totals.before, totals.after) == (50.0, 100.0)
    waits = [
        change
        for change in single(comparison).changes
        if change.measure is LockMeasure.WAIT and change.is_per_transaction
    ]
    assert [(change.before, change.after) for change in waits] == [(0.004, pytest.approx(0.009))]


@pytest.mark.parametrize(
    ("before", "after"), [({"done": 1}, {"done": 9}), ({"done": 9}, {"gone": 9}), ({}, {})]
)
def test_marks_of_one_side_alone_are_no_transactions(
    before: Mapping[str, int], after: Mapping[str, int]
) -> None:
    comparison = compare(
        side([{MUTEX: figures(0.2)}], before), side([{MUTEX: figures(0.9)}], after)
    )
    assert comparison.transaction is None
    assert not any(change.is_per_transaction for change in single(comparison).changes)


def test_lost_marks_are_no_transactions() -> None:
    whole = side([{MUTEX: figures(0.2)}], {"done": 50})
    lossy = side([{MUTEX: figures(0.2)}], {"done": 50}, marks_lost=True)
    assert compare(whole, whole).transaction == "done"
    assert compare(whole, lossy).transaction is None


def test_idle_waits_leave_no_count_of_contended_acquisitions() -> None:
    idle = Figures(wait_s=0.2, contended=None, acquisitions=100.0, hold_s=None)
    changes = changes_of(single(compare(side([{MUTEX: idle}]), side([{MUTEX: idle}]))))
    assert changes.keys() == {LockMeasure.WAIT, LockMeasure.ACQUISITIONS}


def test_of_a_sampled_side_waits_alone_are_compared() -> None:
    sampled = Figures(wait_s=0.2, contended=3.0, acquisitions=None, hold_s=None)
    samples = side([{MUTEX: sampled}], is_sampled=True)
    comparison = compare(samples, side([{MUTEX: figures(0.4)}]))
    assert changes_of(single(comparison)).keys() == {LockMeasure.WAIT}
    assert changes_of(comparison.totals).keys() == {LockMeasure.WAIT}
    both = changes_of(single(compare(samples, samples)))
    assert both.keys() == {LockMeasure.WAIT, LockMeasure.CONTENDED, LockMeasure.MEAN_WAIT}
