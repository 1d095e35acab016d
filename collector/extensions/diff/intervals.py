"""The interval of a ratio of two rates, each measured in pieces of a span.

A rate is a sum over a sum, such as seconds waited over seconds observed. The logarithm of a rate
has about a normal error, so the interval is Welch's t on the logarithms of the two rates. The
logarithm is that of the whole span, not of a piece, so a piece may have nothing in it.

Successive pieces may be alike: then they say less than their number. Pairs of them are joined until
their errors are not significantly alike. The likeness that may be left widens the interval.
docs/internals/adr/0011-intervals-of-differences.md has the reasons and the measurements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from locktop.collector.analysis import student

#: Fewer independent pieces on one side give no interval.
MIN_PIECES = 8
#: The share of intervals that have the true ratio.
CONFIDENCE = 0.95
#: The most likeness of successive pieces that an interval takes into account.
_MAX_LIKENESS = 0.9


class RatePart(Struct, frozen=True):
    """The share of one piece in a rate, such as seconds waited and seconds observed."""

    amount: float
    base: float


class Interval(Struct, frozen=True):
    """An interval of a ratio, after over before."""

    low: float
    high: float
    pieces: tuple[int, int]  # independent pieces of both sides

    @property
    def has_change(self) -> bool:
        """Whether the interval leaves out 1, which is no change."""
        return not self.low <= 1.0 <= self.high


class _Errors(Struct, frozen=True):
    """The relative errors of the independent pieces of one side. Their sum is 0."""

    errors: Sequence[float]
    likeness: float  # of successive pieces

    def variance(self, likeness: float) -> float:
        """Return the variance of the logarithm of the rate."""
        count = len(self.errors)
        return sum(error * error for error in self.errors) / (count - 1) / self.units(likeness)

    def units(self, likeness: float) -> float:
        """Return how many pieces without any likeness say as much."""
        return max(2.0, len(self.errors) * (1 - likeness) / (1 + likeness))


def rate(parts: Sequence[RatePart]) -> float | None:
    """Return the rate of all pieces together; None without a base."""
    base = sum(part.base for part in parts)
    whole = sum(part.amount for part in parts) / base if base > 0 else math.inf
    return whole if math.isfinite(whole) else None


def interval_of_ratio(before: Sequence[RatePart], after: Sequence[RatePart]) -> Interval | None:
    """Return the interval of 95 % of the ratio of two rates.

    None if a rate is 0, or a side has fewer than MIN_PIECES independent pieces.
    """
    first, second = _independent(before), _independent(after)
    if first is None or second is None:
        return None
    # Of few pieces the likeness is hardly known, so the larger one counts for both sides.
    likeness = max(first.likeness, second.likeness)
    variances = first.variance(likeness), second.variance(likeness)
    error = math.sqrt(sum(variances))
    log_ratio = math.log(rate(after) or 1.0) - math.log(rate(before) or 1.0)
    reach = 0.0
    if error > 0:
        freedoms = first.units(likeness) - 1, second.units(likeness) - 1
        parts = [part**2 / freedom for part, freedom in zip(variances, freedoms, strict=True)]
        reach = error * student.quantile((1 - CONFIDENCE) / 2, max(1, int(error**4 / sum(parts))))
    return Interval(
        low=math.exp(max(log_ratio - reach, -700.0)),
        high=math.exp(min(log_ratio + reach, 700.0)),
        pieces=(len(first.errors), len(second.errors)),
    )


def _independent(parts: Sequence[RatePart]) -> _Errors | None:
    """Join successive pieces until they are not alike; None if too few are left."""
    while len(parts) >= MIN_PIECES:
        errors = _relative_errors(parts)
        if errors is None:
            return None
        count, likeness = len(errors), autocorrelation(errors)
        if abs(likeness) < 2 / math.sqrt(count):
            # Few pieces show less likeness than there is.
            unbiased = likeness + (1 + 4 * max(likeness, 0.0)) / count
            return _Errors(errors, min(max(unbiased, 0.0), _MAX_LIKENESS))
        parts = _join_pairs(parts)
    return None


def _relative_errors(parts: Sequence[RatePart]) -> Sequence[float] | None:
    amount = sum(part.amount for part in parts) / len(parts)
    base = sum(part.base for part in parts) / len(parts)
    if amount <= 0 or base <= 0:
        return None
    return [part.amount / amount - part.base / base for part in parts]


def _join_pairs(parts: Sequence[RatePart]) -> Sequence[RatePart]:
    """Return pairs of pieces as one piece each; the last piece of an odd number is left out."""
    return [
        RatePart(first.amount + second.amount, first.base + second.base)
        for first, second in zip(parts[::2], parts[1::2], strict=False)
    ]


def autocorrelation(values: Sequence[float]) -> float:
    """Return how much each value is like the one before it: -1 to 1, 0 for equal values."""
    mean = sum(values) / len(values)
    errors = [value - mean for value in values]
    whole = sum(error * error for error in errors)
    # Equal rates differ by their rounding alone.
    if whole <= 1e-20 * len(values):
        return 0.0
    return sum(first * second for first, second in pairwise(errors)) / whole
