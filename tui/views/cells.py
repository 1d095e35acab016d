"""Text in cells: figures with three significant digits, bars, and text cut to a width.

A figure that did not change gives the same text: the screen sends only rows that changed.
"""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

#: Widths that the functions below promise to stay within.
DURATION_WIDTH = 6
COUNT_WIDTH = 5
PERCENT_WIDTH = 4

_DURATION_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))
_COUNT_UNITS = ((1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P"))
_UNPRINTABLE = "?"


def duration(seconds: float | None) -> str:
    """``seconds`` as at most 6 characters: 850ns, 1.23ms, 12.3s, 12m34s, 3h05m, 4d02h."""
    if seconds is None:
        return "-"
    if seconds <= 0:
        return "0"
    if seconds >= 599.5:
        return _long_duration(round(seconds))
    for unit, suffix in _DURATION_UNITS:
        if seconds >= unit * 0.9995:
            return _three_digits(seconds / unit) + suffix
    return f"{seconds * 1e9:.0f}ns"


def lasting(seconds: float, is_lower_bound: bool) -> str:
    """How long something has lasted: 1.23s, >1.23s."""
    return f">{duration(seconds)}" if is_lower_bound else duration(seconds)


def _long_duration(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}h{minutes:02d}m"
    days, hours = divmod(hours, 24)
    return f"{days}d{hours:02d}h" if days < 100 else f"{days}d"


def clock(seconds: float) -> str:
    """``seconds`` as hours:minutes:seconds."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{rest:02d}"


def count(number: float) -> str:
    """A count or a rate as at most 5 characters: 0, 0.25, 999, 1.23k, 12.3M."""
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


def _three_digits(value: float) -> str:
    if value < 9.995:
        return f"{value:.2f}"
    if value < 99.95:
        return f"{value:.1f}"
    return f"{value:.0f}"


def exact(number: int) -> str:
    """A counter with every digit: 1,234,567."""
    return f"{number:,}"


def threads(number: int) -> str:
    """How many threads there are."""
    return "1 thread" if number == 1 else f"{number} threads"


def percent(share: float) -> str:
    """``share`` 0..1 as at most 4 characters; a little is never 0 %, not quite all never 100 %."""
    if share <= 0:
        return "0%"
    if share < 0.01:
        return "<1%"
    if share >= 1:
        return "100%"
    return f"{min(99, round(share * 100))}%"


def bar(share: float, width: int) -> str:
    """``share`` 0..1 as a bar of ``width`` cells in halves; a little is at least half a cell."""
    halves = round(min(1.0, max(0.0, share)) * width * 2)
    if share > 0.005:
        halves = max(1, halves)
    return ("━" * (halves // 2) + "╸" * (halves % 2)).ljust(width)


def size(number: float) -> str:
    """Bytes as binary units: 512B, 1.23K, 45.6M, 7.89G."""
    for suffix in "BKMG":
        if number < 999.5:
            return f"{number:.0f}B" if suffix == "B" else _three_digits(number) + suffix
        number /= 1024
    return _three_digits(number) + "T"


def plain(text: str) -> str:
    """``text`` with a question mark for each character that a terminal may obey."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _UNPRINTABLE for c in text)


def fit(text: str, width: int) -> str:
    """``text`` in exactly ``width`` cells: cut with an ellipsis or filled with blanks."""
    text = plain(text)
    if text.isascii():
        if len(text) <= width:
            return text.ljust(width)
    elif cell_len(text) <= width:
        return set_cell_size(text, width)
    if width <= 1:
        return "…"[:width]
    return set_cell_size(text, width - 1) + "…"


def fit_right(text: str, width: int) -> str:
    """``text`` in exactly ``width`` cells, aligned to the right."""
    return text.rjust(width) if len(text) <= width else fit(text, width)
