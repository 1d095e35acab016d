"""Student's t distribution for whole degrees of freedom. The tests compare it with scipy."""

from __future__ import annotations

import math

#: Halvings of the interval from 0 to _MAX_T, until the rest is a rounding error.
_HALVINGS = 80
_MAX_T = 1e9


def upper_tail(t: float, freedom: int) -> float:
    """Return the probability of a value above ``t``.

    The sums are those of Abramowitz and Stegun, 26.7.3 and 26.7.4.

    Args:
        t: any number, also an infinite one.
        freedom: degrees of freedom, at least 1.
    """
    if math.isinf(t):
        return 0.0 if t > 0 else 1.0
    angle = math.atan2(t, math.sqrt(freedom))
    sine, cosine, is_odd = math.sin(angle), math.cos(angle), freedom % 2
    term = (cosine if is_odd else 1.0) if freedom > 1 else 0.0
    total = term
    for number in range(2 + is_odd, freedom - 1, 2):
        term *= cosine**2 * (number - 1) / number
        total += term
    between = (angle + sine * total) * 2 / math.pi if is_odd else sine * total
    return (1.0 - between) / 2


def quantile(tail: float, freedom: int) -> float:
    """Return the value that has the probability ``tail`` above it.

    Args:
        tail: above 0, at most 0.5.
        freedom: degrees of freedom, at least 1.
    """
    low, high = 0.0, _MAX_T
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if upper_tail(middle, freedom) > tail:
            low = middle
        else:
            high = middle
    return high
