"""The interval of a ratio of two rates, by simulation and beside scipy."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from support.seeds import seeds

from locktop.collector.extensions.diff.intervals import (
    MIN_PIECES,
    Interval,
    RatePart,
    autocorrelation,
    interval_of_ratio,
    rate,
)


def ar1(random_: random.Random, count: int, likeness: float, level: float = 1.0) -> list[RatePart]:
    """Return pieces of a second whose rates are alike by ``likeness``, from one to the next."""
    error = random_.gauss(0, 1)
    parts = []
    for _ in range(count):
        parts.append(RatePart(level * max(0.0, 1 + 0.3 * error), 1.0))
        error = likeness * error + math.sqrt(1 - likeness**2) * random_.gauss(0, 1)
    return parts


def interval(before: Sequence[float], after: Sequence[float]) -> Interval | None:
    sides = [[RatePart(amount, 1.0) for amount in amounts] for amounts in (before, after)]
    return interval_of_ratio(*sides)


@pytest.mark.parametrize("likeness", [0.0, 0.3, 0.5, 0.7, 0.9])
def test_without_a_change_few_intervals_miss_1(likeness: float) -> None:
    missed = 0
    for seed in seeds(1000):
        random_ = random.Random(seed)
        result = interval_of_ratio(ar1(random_, 32, likeness), ar1(random_, 32, likeness))
        missed += result is not None and result.has_change
    assert missed <= 70


def test_the_interval_of_a_change_has_its_size() -> None:
    results = []
    for seed in seeds(200):
        random_ = random.Random(seed)
        results.append(interval_of_ratio(ar1(random_, 32, 0.0), ar1(random_, 32, 0.0, level=2.0)))
    significant = [result for result in results if result is not None and result.has_change]
    assert len(significant) >= 190
    assert sum(result.low <= 2.0 <= result.high for result in significant) >= 180


def test_pieces_that_grow_all_the_time_have_a_wide_interval_or_none() -> None:
    growing = [float(number) for number in range(1, 33)]
    twice = [2 * level for level in growing]
    result = interval(growing, twice)
    assert result is not None
    assert result.pieces == (8, 8)
    assert not result.has_change
    assert interval(growing[:15], twice[:15]) is None


def test_successive_pieces_that_are_alike_are_joined() -> None:
    random_ = random.Random(1)
    pairs = [level for _ in range(16) for level in [random_.uniform(1, 2)] * 2]
    result = interval(pairs, pairs)
    assert result is not None
    assert result.pieces == (16, 16)


def test_fewer_pieces_have_no_interval() -> None:
    even, fewer = [1.0, 2.0] * MIN_PIECES, [1.0, 2.0, 1.5, 1.2, 1.7, 1.1, 2.1]
    assert len(fewer) == MIN_PIECES - 1
    assert interval(fewer, even) is None
    assert interval(even, fewer) is None


def test_a_rate_of_0_has_no_interval() -> None:
    assert interval([0.0] * 10, [1.0] * 10) is None
    assert interval([1.0] * 10, [0.0] * 10) is None


def test_equal_rates_have_a_narrow_interval() -> None:
    result = interval([0.1] * 10, [0.3] * 10)
    assert result is not None
    assert (result.low, result.high) == pytest.approx((3.0, 3.0))
    assert result.has_change


def test_a_rate_is_that_of_the_whole_span() -> None:
    assert rate([RatePart(1.0, 1.0), RatePart(0.0, 3.0)]) == 0.25
    assert rate([RatePart(1.0, 0.0)]) is None
    assert rate([]) is None
    assert rate([RatePart(1e308, 1e-308)]) is None


def test_pieces_of_other_lengths_with_one_rate_do_not_differ() -> None:
    before = [RatePart(2.0 * seconds, seconds) for seconds in (1.0, 2.0, 1.5) * 4]
    after = [RatePart(2.0 * seconds, seconds) for seconds in (0.5, 0.7, 3.0) * 4]
    result = interval_of_ratio(before, after)
    assert result is not None
    assert (result.low, result.high) == pytest.approx((1.0, 1.0))


def test_likeness_of_successive_values() -> None:
    assert autocorrelation([1.0] * 10) == 0.0
    assert autocorrelation([1.0, 2.0] * 10) == pytest.approx(-0.95)
    assert autocorrelation([1.0] * 10 + [2.0] * 10) > 0.8
