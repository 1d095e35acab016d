"""Sums and maxima of figures that a source may not measure."""

from __future__ import annotations

import pytest

from locktop.collector.model.figures import longest, total


@pytest.mark.parametrize(
    ("figures", "expected"),
    [([], 0), ([0, 0], 0), ([1, 2.5], 3.5), ([1, None, 2], None), ([None], None)],
)
def test_a_sum_is_none_if_a_figure_is_none(
    figures: list[float | None], expected: float | None
) -> None:
    assert total(figures) == expected


@pytest.mark.parametrize(
    ("times_s", "expected"),
    [([], 0.0), ([0.0], 0.0), ([1.0, 2.5], 2.5), ([3.0, None], None)],
)
def test_the_longest_time_is_none_if_a_time_is_none(
    times_s: list[float | None], expected: float | None
) -> None:
    assert longest(times_s) == expected
