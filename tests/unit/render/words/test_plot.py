"""Plots in text."""

from __future__ import annotations

import pytest

from locktop.collector.render.words.plot import bar, sparkline


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        ((), ""),
        ((0.0, 0.0), "  "),
        ((1.0, 0.0, 0.001), "█ ▁"),
        ((1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0), "▂▃▄▅▆▇██"),
    ],
)
def test_a_sparkline_has_a_height_for_each_figure(figures: tuple[float, ...], text: str) -> None:
    assert sparkline(figures) == text


def test_a_little_is_half_a_cell() -> None:
    assert bar(0.01, 4) == "╸   "
    assert bar(0.0, 4) == "    "
    assert bar(2.0, 4) == "━━━━"
