"""Where a thread's time went, as a bar: each part has a sign of its own, so colours only help."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.export.text.time_split import PARTS
from locktop.collector.model import TimeSplit
from locktop.tui.views.cells import percent
from locktop.tui.views.styled_line import Line, Span, merge

#: The parts of TimeSplit from the left, each with its sign and its style. What a monitor of locks
#: is looked at for comes first; neighbours of one style make one run.
SIGNS: tuple[tuple[str, str, str], ...] = (
    ("contended", "━", "waiting"),
    ("runnable", "▒", "running"),
    ("cpu", "█", "running"),
    ("disk", "▚", "where"),
    ("other", "-", "dim"),
    ("idle", "·", "dim"),
)


def time_bar(time: TimeSplit | None, width: int) -> Line:
    """The bar, ``width`` cells; blank where nothing is known."""
    if time is None:
        return ((" " * width, "dim"),)
    cells = _cells([getattr(time, part) for part, _, _ in SIGNS], width)
    return merge(
        (sign * count, style) for count, (_, sign, style) in zip(cells, SIGNS, strict=True)
    )


def _cells(shares: list[float], width: int) -> list[int]:
    """Share out ``width`` cells; those left over go to the parts that were cut most."""
    whole = sum(shares)
    if whole <= 0:
        return [*([0] * (len(shares) - 1)), width]
    exact = [share / whole * width for share in shares]
    cells = [int(one) for one in exact]
    most_cut = sorted(range(len(shares)), key=lambda i: (cells[i] - exact[i], i))
    for i in most_cut[: width - sum(cells)]:
        cells[i] += 1
    return cells


def time_words(time: TimeSplit) -> Iterator[Span | str]:
    """The parts in words, those that are some, and those of which nothing is known."""
    comma = ""
    for part, sign, style in SIGNS:
        share: float = getattr(time, part)
        if share >= 0.005:
            yield from (comma, (sign, style), f" {PARTS[part]} {percent(share)}")
            comma = ", "
    for part in time.unknown:
        if getattr(time, part) < 0.005:
            yield f"{comma}{PARTS[part]} not known"
            comma = ", "
