"""The median of lengths that a coarse clock measured."""

from __future__ import annotations

import random
from collections import Counter
from statistics import median

import pytest

from locktop.collector.extensions.gate import hold_median


def test_a_single_length_is_the_median() -> None:
    assert hold_median.median({7: 3}) == 7
    assert hold_median.median({7: 1}) == 7


def test_the_median_lies_within_a_step_by_the_counts() -> None:
    assert hold_median.median({20: 1, 30: 1}) == 25
    assert 20 < hold_median.median({20: 3, 30: 1}) < 25
    assert 25 < hold_median.median({20: 1, 30: 3}) < 30


def test_a_few_far_lengths_hardly_move_the_median() -> None:
    assert hold_median.median({100: 95, 110: 1, 90: 1, 10_000: 3}) == pytest.approx(100, rel=0.01)


def test_holds_within_one_step_have_a_length() -> None:
    assert hold_median.median({1: 9, 26: 1}) > 0
    assert hold_median.median({1: 9}) > 0


def test_without_ties_the_median_is_the_usual_one() -> None:
    rng = random.Random(3)
    lengths = rng.sample(range(1_000_000), 10_001)
    assert hold_median.median(Counter(lengths)) == pytest.approx(median(lengths), rel=1e-3)


def test_a_clock_of_ten_ns_shows_a_growth_of_a_fifth() -> None:
    rng = random.Random(4)

    def measured(length: float) -> float:
        """Return the median of holds of one length, whose begins the clock rounds down."""
        begins = [rng.uniform(0, 1000) for _ in range(20_000)]
        ticks = [int((begin + length) // 10 - begin // 10) * 10 for begin in begins]
        return hold_median.median(Counter(ticks))

    assert 1.1 < measured(26.4) / measured(22) < 1.3
