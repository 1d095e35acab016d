"""Heat maps: how much all threads together waited, in cells of time."""

from __future__ import annotations

from collections.abc import Iterable

from locktop.collector.model import Lane, LaneSpan, LaneState, Window

#: Nanoseconds of a second.
SECOND_NS = 1_000_000_000


def waits_by_lock(lanes: Iterable[Lane], window: Window) -> dict[int, list[int]]:
    """Return the nanoseconds waited for each lock in each cell, the most waited first."""
    sums: dict[int, list[int]] = {}
    for lane in lanes:
        for span in lane.spans:
            if span.state is LaneState.WAITING:
                row = sums.get(span.lock)
                if row is None:
                    row = sums[span.lock] = [0] * window.count
                _add(row, window, span)
    return _sort_rows(sums)


def waits_by_thread(lanes: Iterable[Lane], window: Window) -> dict[int, list[int]]:
    """Return the nanoseconds that each thread waited in each cell, the most waited first."""
    sums = {}
    for lane in lanes:
        row = sums[lane.tid] = [0] * window.count
        for span in lane.spans:
            if span.state is LaneState.WAITING:
                _add(row, window, span)
    return _sort_rows(sums)


def waits_by_offset(
    lanes: Iterable[Lane], first_s: int, seconds: int, rows: int, lock: int = 0
) -> list[list[int]]:
    """Return the nanoseconds waited by offset within the second.

    Args:
        lanes: the threads.
        first_s: the first second, since 1970.
        seconds: number of seconds, one a column.
        rows: number of parts of a second.
        lock: the lock; 0: all locks.

    Returns:
        A list for each part of a second, the first part first, with an element for each second.
    """
    begin = first_s * SECOND_NS
    window = Window(from_ns=begin, to_ns=begin + seconds * SECOND_NS, count=seconds * rows)
    sums = [0] * window.count
    for lane in lanes:
        for span in lane.spans:
            if span.state is LaneState.WAITING and lock in (0, span.lock):
                _add(sums, window, span)
    return [sums[row::rows] for row in range(rows)]


def _add(row: list[int], window: Window, span: LaneSpan) -> None:
    for cell, ns in window.parts(span.from_ns, span.to_ns):
        row[cell] += ns


def _sort_rows(sums: dict[int, list[int]]) -> dict[int, list[int]]:
    order = sorted(sums, key=lambda key: (-sum(sums[key]), key))
    return {key: sums[key] for key in order}
