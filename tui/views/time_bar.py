"""Where the time of a thread went, as a bar. Each part has a sign, so colour is no need."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.model import TimeSplit
from locktop.collector.render.text.time_split import PARTS
from locktop.tui.views.cells import percent
from locktop.tui.views.styled_line import Line, Span, merge

#: The parts of TimeSplit from the left, each with its sign and its style. Contention comes first;
#: adjacent parts of one style are one span.
SIGNS: tuple[tuple[str, str, str], ...] = (
    ("contended", "━", "waiting"),
    ("runnable", "▒", "running"),
    ("cpu", "█", "running"),
    ("disk", "▚", "where"),
    ("other", "-", "dim"),
    ("idle", "·", "dim"),
)


#: By a part that the kernel does not count: what makes it.
_HOW_TO_COUNT = {"disk": " (sysctl kernel.task_delayacct=1 would)"}


def time_bar(time: TimeSplit | None, width: int) -> Line:
    """The bar in ``width`` cells, blank where nothing is known."""
    if time is None:
        return ((" " * width, "dim"),)
    cells = _cells([getattr(time, part) for part, _, _ in SIGNS], width)
    return merge(
        (sign * count, style) for count, (_, sign, style) in zip(cells, SIGNS, strict=True)
    )


def _cells(shares: list[float], width: int) -> list[int]:
    """Share out ``width`` cells; cells left over go to the parts that lost most by rounding."""
    whole = sum(shares)
    if whole <= 0:
        return [*([0] * (len(shares) - 1)), width]
    exact = [share / whole * width for share in shares]
    cells = [int(share) for share in exact]
    by_lost_part = sorted(range(len(shares)), key=lambda i: (cells[i] - exact[i], i))
    for i in by_lost_part[: width - sum(cells)]:
        cells[i] += 1
    return cells


def time_words(time: TimeSplit) -> Iterator[Span | str]:
    """The parts with at least half a percent in words, then the parts that nobody counts."""
    comma = ""
    for part, sign, style in SIGNS:
        share: float = getattr(time, part)
        if share >= 0.005:
            yield from (comma, (sign, style), f" {PARTS[part]} {percent(share)}")
            comma = ", "
    for part in time.unknown:
        if getattr(time, part) < 0.005:
            yield f"{comma}{PARTS[part]} not counted{_HOW_TO_COUNT.get(part, '')}"
            comma = ", "
