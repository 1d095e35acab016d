"""Student's t distribution, with scipy as the oracle."""

from __future__ import annotations

import math
import random

import pytest
from scipy import stats

from locktop.collector.analysis import student


def test_the_tail_is_that_of_scipy() -> None:
    rng = random.Random(1)
    for _ in range(500):
        t, freedom = rng.uniform(-60, 60), rng.randint(1, 60)
        expected = float(stats.t.sf(t, freedom))
        assert student.upper_tail(t, freedom) == pytest.approx(expected, abs=1e-14)


def test_the_quantile_is_that_of_scipy() -> None:
    rng = random.Random(2)
    for _ in range(200):
        tail, freedom = 10 ** rng.uniform(-7, -0.31), rng.randint(1, 60)
        expected = float(stats.t.isf(tail, freedom))
        assert student.quantile(tail, freedom) == pytest.approx(expected, rel=1e-8)


def test_the_ends_of_the_distribution() -> None:
    assert student.upper_tail(math.inf, 3) == 0
    assert student.upper_tail(-math.inf, 3) == 1
    assert student.upper_tail(0.0, 4) == 0.5
