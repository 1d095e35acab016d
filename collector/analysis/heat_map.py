"""Heat maps: how much all threads together waited, in cells of time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from locktop.collector.analysis.timeline import counted_parts
from locktop.collector.model import CountedSpan, Lane, LaneSpan, LaneState, Window

#: Nanoseconds of a second.
SECOND_NS = 1_000_000_000


def waits_by_lock(
    lanes: Iterable[Lane], window: Window, counted: Iterable[CountedSpan] = ()
) -> dict[int, list[int]]:
    """Return the nanoseconds waited for each lock in each cell, the most waited first.

    Args:
        lanes: the threads.
        window: the cells.
        counted: what all threads waited where the lanes have sums.
    """
    sums: dict[int, list[int]] = {}
    for lane in lanes:
        for span in lane.spans:
            if span.state is LaneState.WAITING:
                row = sums.get(span.lock)
                if row is None:
                    row = sums[span.lock] = [0] * window.count
                _add(row, window, span)
    for counted_span in counted:
        for cell, (_, lock), ns in counted_parts(counted_span, window):
            sums.setdefault(lock, [0] * window.count)[cell] += ns
    return _sort_rows(sums)


def add_rows(rows: Iterable[Sequence[int]]) -> list[int]:
    """Return the sums of rows, cell by cell."""
    return [sum(cells) for cells in zip(*rows, strict=True)]


def waits_by_thread(lanes: Iterable[Lane], window: Window) -> dict[int, list[int]]:
    """Return the nanoseconds that each thread waited in each cell, the most waited first."""
    sums = {}
    for lane in lanes:
        row = sums[lane.tid] = [0] * window.count
        for span in lane.spans:
            if span.state is LaneState.WAITING:
                _add(row, window, span)
        for counted_span in lane.counted:
            for cell, (state, _), ns in counted_parts(counted_span, window):
                if state is LaneState.WAITING:
                    row[cell] += ns
    return _sort_rows(sums)


def waits_by_offset(
    lanes: Iterable[Lane],
    first_s: int,
    seconds: int,
    rows: int,
    locks: Collection[int] = (),
) -> list[list[int]]:
    """Return the nanoseconds waited by offset within the second.

    Counted spans are left out: nobody knows at which moments their waits were.

    Args:
        lanes: the threads.
        first_s: the first second, since 1970.
        seconds: number of seconds, one a column.
        rows: number of parts of a second.
        locks: the only locks that count; none: all locks.

    Returns:
        A list for each part of a second, the first part first, with an element for each second.
    """
    begin = first_s * SECOND_NS
    window = Window(from_ns=begin, to_ns=begin + seconds * SECOND_NS, count=seconds * rows)
    sums = [0] * window.count
    for lane in lanes:
        for span in lane.spans:
            if span.state is LaneState.WAITING and (not locks or span.lock in locks):
                _add(sums, window, span)
    return [sums[row::rows] for row in range(rows)]


def _add(row: list[int], window: Window, span: LaneSpan) -> None:
    for cell, ns in window.parts(span.from_ns, span.to_ns):
        row[cell] += ns


def _sort_rows(sums: dict[int, list[int]]) -> dict[int, list[int]]:
    order = sorted(sums, key=lambda key: (-sum(sums[key]), key))
    return {key: sums[key] for key in order}
