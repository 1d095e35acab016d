"""The graphs of the overview: what the process did in the last two minutes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from statistics import fmean

from locktop.collector.recording.past_activity import SPAN_NS, ActivityPoint
from locktop.tui.views.cells import count, duration
from locktop.tui.views.graph import (
    TimeGraph,
    axis_line,
    beside,
    column_count,
    column_values,
    graph_lines,
)
from locktop.tui.views.styled_line import Line

#: From this width two graphs stand side by side.
_MIN_TWO = 60
#: The lines of a graph: on small terminals, and at most. A line of values is one of them.
_MIN_HEIGHT, _MAX_HEIGHT = 2, 12


def activity_graphs(
    points: Sequence[ActivityPoint],
    until_ns: int,
    alerts_ns: Iterable[int],
    size: tuple[int, int],
    is_now: bool = True,
) -> list[Line]:
    """The graphs with their axis, in about half of the lines.

    Args:
        points: the earliest first.
        until_ns: the moment at the right end, since 1970.
        alerts_ns: times of alerts.
        size: the cells and the lines of the overview.
        is_now: whether the moment is now.
    """
    width, lines = size
    is_wide = width >= _MIN_TWO
    each = width // 2 if is_wide else width
    rows = 2 if is_wide else 4
    height = min(_MAX_HEIGHT, max(_MIN_HEIGHT, (lines // 2 - 1) // rows))
    graphs = [graph_lines(graph, each, height) for graph in _graphs(points, until_ns, each)]
    axis = [axis_line(each, SPAN_NS, until_ns, tuple(alerts_ns), "now" if is_now else "then")]
    if not is_wide:
        return [*(line for graph in graphs for line in graph), *axis]
    pair = partial(beside, width=each)
    return [*pair(graphs[0], graphs[1]), *pair(graphs[2], graphs[3]), *pair(axis, axis)]


def _graphs(points: Sequence[ActivityPoint], until_ns: int, width: int) -> Iterator[TimeGraph]:
    def graph(
        title: str,
        value: Callable[[ActivityPoint], float | None],
        text: Callable[[float], str],
        combine: Callable[[Sequence[float]], float],
        style: str = "waiting",
    ) -> TimeGraph:
        samples = [(point.time_ns, value(point)) for point in points]
        values = column_values(samples, until_ns, SPAN_NS, column_count(width), combine)
        newest = values[-1] if combine is fmean or not samples else samples[-1][1]
        return TimeGraph(title, values, newest, text, style)

    # A short crowd or a long wait is to be seen in any column; a rate is a mean.
    yield graph("Waiting threads", lambda point: point.waiting, count, max)
    yield graph("Longest wait", lambda point: point.longest_s, duration, max)
    yield graph("Waits ended a second", lambda point: point.waits_per_s, count, fmean)
    yield graph("CPUs in use", lambda point: point.cpus, count, fmean, "running")
