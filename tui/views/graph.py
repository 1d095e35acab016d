"""A graph over time as lines of blocks, with its maximum and an axis of time.

The functions are pure. A terminal without UTF-8 gets ASCII cell by cell, as it does of all lines
(``terminal/ascii_only.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from rich.cells import cell_len

from locktop.tui.views.styled_line import Line, Span, cut, line_text, make_line, merge

#: The cells at the left of the columns, and at their right for the maximum and the end of the axis.
_MARGIN, _GUTTER = 1, 7
_BLOCKS = " ▁▂▃▄▅▆▇█"
_EIGHTHS = len(_BLOCKS) - 1
_UNKNOWN = "·"
#: The axis is blank between the minutes: a rule has three bytes a cell on a slow link.
_RULE, _ALERT = " ", "▲"
#: A value stands for the time since the value before, but for no more time than this.
_MAX_GAP_NS = 10_000_000_000


class TimeGraph(Struct, frozen=True):
    """The figures of a graph over time, with their texts."""

    title: str
    values: Sequence[float | None]  # one for each column, the oldest first; None: not measured
    newest: float | None  # the value at the right end, which its column may combine with others
    text: Callable[[float], str]  # a value with its unit, in at most 6 cells
    style: str = "waiting"  # of the columns


def column_count(width: int) -> int:
    """Return how many columns a graph of ``width`` cells has."""
    return max(1, width - _MARGIN - _GUTTER)


def column_values(
    samples: Iterable[tuple[int, float | None]],
    until_ns: int,
    span_ns: int,
    columns: int,
    combine: Callable[[Sequence[float]], float] = max,
) -> list[float | None]:
    """Return the value of each column of a graph, the oldest first.

    The columns begin at whole multiples of their length. So a column keeps its samples while it
    moves to the left.

    Args:
        samples: times in nanoseconds with values, the earliest first; None: not measured.
        until_ns: the moment at the right end; later samples do not count.
        span_ns: the time from the left end to the right end.
        columns: how many there are, at least 1.
        combine: makes one value of those in one column, such as ``max`` or ``fmean``.
    """
    length_ns = max(1, span_ns // columns)
    first = until_ns // length_ns - columns + 1
    in_column: list[list[float]] = [[] for _ in range(columns)]
    before: int | None = None  # the column of the sample before
    for time_ns, value in samples:
        if time_ns > until_ns:
            break
        column = time_ns // length_ns
        since = column
        if before is not None:
            since = min(column, max(before + 1, (time_ns - _MAX_GAP_NS) // length_ns))
        before = column
        if value is not None:
            for number in range(max(since, first), column + 1):
                in_column[number - first].append(value)
    return [combine(values) if values else None for values in in_column]


def graph_lines(graph: TimeGraph, width: int, height: int) -> list[Line]:
    """Return a title with the newest value, and below it the columns with their maximum.

    Args:
        graph: with ``column_count(width)`` values.
        width: cells of each line.
        height: lines, at least 2.
    """
    measured = [value for value in graph.values if value is not None]
    newest: Span | str = f" {graph.text(graph.newest)}" if graph.newest is not None else ""
    if not measured:
        newest = (": not measured", "dim")
    title = cut(make_line((f" {graph.title}", "title"), newest), width)
    most = max(measured, default=0.0)
    rows = _rows(graph.values, height - 1, most)
    scale = [f" {graph.text(most)}" if measured else "", *[""] * (height - 2)]
    return [
        title,
        *[
            merge([(" " * _MARGIN, "text"), *_style_row(row, graph.style), (label, "dim")])
            for row, label in zip(rows, scale, strict=True)
        ],
    ]


def axis_line(
    width: int, span_ns: int, until_ns: int, alerts_ns: Iterable[int] = (), end: str = "now"
) -> Line:
    """Return the axis of a graph: the minutes, and a mark for each alert.

    Args:
        width: cells of the line, as of the graph.
        span_ns: the time from the left end to the right end.
        until_ns: the moment at the right end.
        alerts_ns: times of alerts.
        end: the name of the right end, at most 6 characters.
    """
    columns = column_count(width)
    cells = [_RULE] * columns
    length_ns = max(1, span_ns // columns)
    alerts = {columns - 1 - (until_ns // length_ns - time_ns // length_ns) for time_ns in alerts_ns}
    for minutes in range(span_ns // 60_000_000_000, 0, -1):
        label = f"-{minutes} min "
        begin = max(0, columns - round(minutes * 60_000_000_000 / length_ns))
        is_free = begin + len(label) <= columns and alerts.isdisjoint(
            range(begin, begin + len(label))
        )
        if is_free and set(cells[begin : begin + len(label)]) == {_RULE}:
            cells[begin : begin + len(label)] = label
    marked = (
        (_ALERT, "waiting") if number in alerts else (cell, "dim")
        for number, cell in enumerate(cells)
    )
    return merge([(" " * _MARGIN, "dim"), *marked, (f" {end}", "dim")])


def beside(left: Sequence[Line], right: Sequence[Line], width: int) -> list[Line]:
    """Return the lines of two graphs side by side; the left one has ``width`` cells."""
    return [
        merge([*line, (" " * max(0, width - cell_len(line_text(line))), "text"), *other])
        for line, other in zip(left, right, strict=True)
    ]


def _rows(values: Sequence[float | None], height: int, most: float) -> list[str]:
    """Return the rows of blocks from the top. Any value above 0 is visible."""
    eighths = [
        None
        if value is None
        else max(round(value / most * height * _EIGHTHS), int(value > 0))
        if most > 0
        else 0
        for value in values
    ]
    return [
        "".join(
            (_UNKNOWN if row == 0 else " ")
            if count is None
            else _BLOCKS[min(_EIGHTHS, max(0, count - row * _EIGHTHS))]
            for count in eighths
        )
        for row in range(height - 1, -1, -1)
    ]


def _style_row(row: str, style: str) -> list[Span]:
    """Return a row whose cells without a measured value are dim."""
    begin = len(row) - len(row.lstrip(_UNKNOWN))
    return [(row[:begin], "dim"), (row[begin:], style)]
