"""The graphs of the details: a lock or a thread in the last two minutes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from statistics import fmean

from msgspec import Struct

from locktop.collector.recording.past_activity import SPAN_NS, ActivityPoint
from locktop.tui.views.cells import count, percent
from locktop.tui.views.graph import (
    TimeGraph,
    axis_line,
    beside,
    column_count,
    column_values,
    graph_lines,
)
from locktop.tui.views.styled_line import Line

#: The lines of a graph; a line of values is one of them.
_HEIGHT = 3
#: From this width two graphs stand side by side.
_MIN_TWO = 60

_Samples = Sequence[tuple[int, float | None]]


class LastMinutes(Struct, frozen=True):
    """The activity before the snapshot on the screen, and the room for its graphs."""

    points: Sequence[ActivityPoint]  # the earliest first
    until_ns: int  # the time of the snapshot, since 1970
    width: int  # cells


def lock_graphs(minutes: LastMinutes | None, ids: Collection[int]) -> Iterator[Line]:
    """The waiting threads and the waits a second of some locks together; none without waits."""
    if minutes is None:
        return
    waiting = [(point.time_ns, point.waiting_for(ids)) for point in minutes.points]
    waits = [(point.time_ns, point.waits_per_s_for(ids)) for point in minutes.points]
    if _has_any(waiting) or _has_any(waits):
        make = partial(_graph, minutes)
        yield from _draw(
            minutes,
            make("Waiting threads", waiting, is_mean=False),
            make("Waits ended a second", waits),
        )


def thread_graphs(minutes: LastMinutes | None, tid: int) -> Iterator[Line]:
    """The shares of the time in contention and on a CPU; none of a thread without either."""
    if minutes is None:
        return
    shares = [(point.time_ns, point.shares_of(tid)) for point in minutes.points]
    waited: _Samples = [(time_ns, share and share[0]) for time_ns, share in shares]
    on_cpu: _Samples = [(time_ns, share and share[1]) for time_ns, share in shares]
    if _has_any(waited) or _has_any(on_cpu):
        make = partial(_graph, minutes, is_share=True)
        yield from _draw(
            minutes, make("Waits for locks", waited), make("On a CPU", on_cpu, style="running")
        )


def _has_any(samples: _Samples) -> bool:
    return any(value for _, value in samples)


def _graph(
    minutes: LastMinutes,
    title: str,
    samples: _Samples,
    style: str = "waiting",
    is_mean: bool = True,
    is_share: bool = False,
) -> TimeGraph:
    columns = column_count(_width_of_each(minutes))
    combine = fmean if is_mean else max
    values = column_values(samples, minutes.until_ns, SPAN_NS, columns, combine)
    newest = values[-1] if is_mean or not samples else samples[-1][1]
    return TimeGraph(title, values, newest, percent if is_share else count, style)


def _width_of_each(minutes: LastMinutes) -> int:
    return minutes.width // 2 if minutes.width >= _MIN_TWO else minutes.width


def _draw(minutes: LastMinutes, left: TimeGraph, right: TimeGraph) -> Iterator[Line]:
    """Two graphs with one axis each, beside each other where there is room."""
    width = _width_of_each(minutes)
    # Without a word at its end a moment of the past has the cells of the live screen.
    axis = [axis_line(width, SPAN_NS, minutes.until_ns, end="")]
    first, second = graph_lines(left, width, _HEIGHT), graph_lines(right, width, _HEIGHT)
    if width == minutes.width:
        yield from (*first, *second, *axis)
    else:
        yield from beside([*first, *axis], [*second, *axis], width)
