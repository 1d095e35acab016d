"""Plots in text: bars of half cells."""

from __future__ import annotations


def bar(share: float, width: int) -> str:
    """Return ``share`` 0..1 as a bar of ``width`` cells in halves.

    A little is at least half a cell.
    """
    halves = round(min(1.0, max(0.0, share)) * width * 2)
    if share > 0.005:
        halves = max(1, halves)
    return ("━" * (halves // 2) + "╸" * (halves % 2)).ljust(width)
