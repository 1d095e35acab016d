"""Plots in text: bars of half cells, and lines of eight heights."""

from __future__ import annotations

from collections.abc import Sequence

_HEIGHTS = "▁▂▃▄▅▆▇█"


def bar(share: float, width: int) -> str:
    """Return ``share`` 0..1 as a bar of ``width`` cells in halves.

    A little is at least half a cell.
    """
    halves = round(min(1.0, max(0.0, share)) * width * 2)
    if share > 0.005:
        halves = max(1, halves)
    return ("━" * (halves // 2) + "╸" * (halves % 2)).ljust(width)


def sparkline(figures: Sequence[float]) -> str:
    """Return a character for each figure, by its share of the largest one. 0 is a blank."""
    most = max(figures, default=0.0)
    if most <= 0.0:
        return " " * len(figures)
    return "".join(
        _HEIGHTS[min(len(_HEIGHTS) - 1, int(figure / most * len(_HEIGHTS)))] if figure > 0 else " "
        for figure in figures
    )
