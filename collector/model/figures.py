"""Sums and maxima of figures that a source may not measure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Figure = TypeVar("Figure", int, float)


def total(figures: Iterable[Figure | None]) -> Figure | None:
    """Return the sum of ``figures``, None if one of them was not measured."""
    result: Figure = 0
    for figure in figures:
        if figure is None:
            return None
        result += figure
    return result


def longest(times_s: Iterable[float | None]) -> float | None:
    """Return the largest of ``times_s``, None if one of them was not measured."""
    result = 0.0
    for time_s in times_s:
        if time_s is None:
            return None
        result = max(result, time_s)
    return result


def grown(before: Figure | None, now: Figure | None) -> Figure | None:
    """Return the growth of a figure, at least 0; None if one of both was not measured."""
    return max(now - before, 0) if now is not None and before is not None else None
