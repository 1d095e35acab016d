"""Figures as text with three significant digits, for sentences and for the cells of a list.

A function with a ``width`` writes for a sentence without it (``1.23 ms``). With a width it writes
for a cell: no blanks, and never more characters than the width (``1.23ms``). A text depends on its
figure alone, so a figure that did not change stays the same text.
"""

from __future__ import annotations

#: Width of the cell of a duration, which is the least that ``duration`` can keep to.
DURATION_WIDTH = 6
#: Width of the cell of a count, which ``count`` keeps to.
COUNT_WIDTH = 5
#: Width of the cell of a share, which ``percent`` keeps to.
PERCENT_WIDTH = 4
#: Width of the cell of an amount of memory, which ``size`` keeps to.
SIZE_WIDTH = 5

_DURATION_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))
_COUNT_UNITS = ((1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P"))
_SIZE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_SECONDS_OF_A_MINUTE, _SECONDS_OF_AN_HOUR, _SECONDS_OF_A_DAY = 60, 3600, 86_400
#: From here on a time is written in two units. A cell rounds the smaller one, a sentence cuts it.
_LONG_S = 600


def duration(seconds: float | None, width: int | None = None) -> str:
    """Return a time: ``850 ns``, ``1.23 ms``, ``12.3 s``, ``3 h 05 min``; ``-`` for None.

    Args:
        seconds: the time; a negative one counts as 0.
        width: columns of the cell, at least DURATION_WIDTH: ``1.23ms``, ``12m34s``, ``3h05m``.
    """
    if seconds is None:
        return "-"
    if seconds <= 0:
        return "0"
    blank = " " if width is None else ""
    whole = int(seconds if width is None else seconds + 0.5)
    if whole >= _LONG_S:
        return _long_duration(whole, width)
    for unit, suffix in _DURATION_UNITS:
        if seconds >= unit * 0.9995:
            return f"{_three_digits(seconds / unit)}{blank}{suffix}"
    return f"{seconds * 1e9:.0f}{blank}ns"


def lasting(seconds: float, is_lower_bound: bool, width: int | None = None) -> str:
    """Return how long something has lasted: ``1.23 s``, ``at least 1.23 s``.

    With a width: ``1.23s``, ``>1.23s``; the sign may be one character more than the width. A core
    does not tell how long: ``an unknown time``, ``?``.
    """
    if is_lower_bound and not seconds:
        return "an unknown time" if width is None else "?"
    text = duration(seconds, width)
    if not is_lower_bound:
        return text
    return f"at least {text}" if width is None else f">{text}"


def _long_duration(seconds: int, width: int | None) -> str:
    minute, hour, day = _SECONDS_OF_A_MINUTE, _SECONDS_OF_AN_HOUR, _SECONDS_OF_A_DAY
    if seconds < hour:
        large, small, names = seconds // minute, seconds % minute, ("min", "s")
    elif seconds < day or width is None:
        large, small, names = seconds // hour, seconds % hour // minute, ("h", "min")
    else:
        large, small, names = seconds // day, seconds % day // hour, ("d", "h")
    if width is None:
        return f"{large} {names[0]} {small:02d} {names[1]}"
    text = f"{large}{names[0][0]}{small:02d}{names[1][0]}"
    return text if len(text) <= width else f"{large}{names[0][0]}"


def clock(seconds: float) -> str:
    """Return a time as hours, minutes and seconds: ``01:02:05``."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{rest:02d}"


def count(number: float | None) -> str:
    """Return a count or a rate for a cell of COUNT_WIDTH: ``0``, ``0.25``, ``999``, ``1.23k``.

    ``-`` for None.
    """
    if number is None:
        return "-"
    if number <= 0:
        return "0"
    if number < 999.5:
        if float(number).is_integer():
            return f"{number:.0f}"
        return _three_digits(number) if number >= 0.01 else "<0.01"
    for unit, suffix in _COUNT_UNITS:
        if number < unit * 999.5:
            return _three_digits(number / unit) + suffix
    return ">999P"


def exact(number: int | None) -> str:
    """Return a counter with all its digits: ``1,234,567``; ``-`` for None."""
    return "-" if number is None else f"{number:,}"


def counted(number: int, thing: str) -> str:
    """Return a number with its noun: ``1 thread``, ``2 threads``."""
    return f"{number} {thing}{'s' * (number != 1)}"


def percent(share: float | None, width: int | None = None) -> str:
    """Return a share as a percentage: ``12.3 %``; with a width of PERCENT_WIDTH ``12%``.

    ``-`` for None. A small share is never 0 %, and a share below 1 is never 100 %.

    Args:
        share: 0..1. A negative one counts as 0; a larger one counts as 1 in a cell alone.
        width: columns of the cell, at least PERCENT_WIDTH.
    """
    if share is None:
        return "-"
    blank = " " if width is None else ""
    if share <= 0:
        return f"0{blank}%"
    if width is None:
        part = 100 * share
        return "<0.1 %" if part < 0.1 else f"{part if part >= 100 else min(part, 99.9):.1f} %"
    if share < 0.01:
        return "<1%"
    return "100%" if share >= 1 else f"{min(99, round(share * 100))}%"


def size(number: float, width: int | None = None) -> str:
    """Return an amount of memory: ``512 B``, ``1.23 KiB``, ``45.6 MiB``.

    With a width of at least SIZE_WIDTH: ``512B``, ``1.23K``, ``45.6M``.
    """
    for unit in _SIZE_UNITS:
        if number < 999.5 or unit == _SIZE_UNITS[-1]:
            digits = f"{number:.0f}" if unit == "B" else _three_digits(number)
            return f"{digits} {unit}" if width is None else digits + unit[0]
        number /= 1024
    raise AssertionError("the last unit takes every number")


def _three_digits(value: float) -> str:
    if value < 9.995:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"
