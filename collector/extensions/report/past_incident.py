"""Reads what a report shows over time from the past of a process."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from locktop.collector.analysis import timeline_waits
from locktop.collector.extensions.report.cell_folder import CellFolder, FoldedSeries
from locktop.collector.extensions.report.incident import Heat, Incident
from locktop.collector.model import Snapshot, TimedWait, TimeLine, WaitRecord
from locktop.collector.recording.chosen_moment import Span
from locktop.collector.recording.moments import HasBatches, Moments
from locktop.collector.recording.time_lines import (
    KnowsLosses,
    TimeLineReader,
    TooManyRecordsError,
)

CELL_NS = 20_000_000
#: Cells are longer where the times of a stranger's recording lie years apart.
_MAX_CELLS = 1 << 30
#: Records of the exact time line. A page draws a time line of so many in some tenths of a second.
MAX_RECORDS = 20_000
_ONE_SNAPSHOT = "there is no heat map: this span has one snapshot alone"


class _Lines(Struct):
    """A time line, and whether it has all waits of the span."""

    line: TimeLine
    is_whole: bool


def past_incident(
    moments: Moments,
    span: Span,
    begin_ns: int | None,
    to_ns: int,
    max_records: int = MAX_RECORDS,
) -> Incident:
    """Return a report's contents with the waits of a span.

    Args:
        moments: the past of the process.
        span: the snapshots of the report.
        begin_ns: the begin of the span, nanoseconds since 1970; None: that of the past.
        to_ns: its end.
        max_records: the most records of the exact time line.

    Raises:
        LocktopError: the past is damaged.
    """
    times = moments.times_ns()
    if to_ns <= max(times[0], begin_ns or 0):
        return Incident(span=span, notes=(_ONE_SNAPSHOT,))
    reader = TimeLineReader(moments, max_records)
    from_ns = begin_ns if begin_ns is not None else reader.bounds()[0]
    lines = _read_lines(reader, from_ns, to_ns)
    notes = []
    cell_ns = CELL_NS
    while to_ns - from_ns > cell_ns * _MAX_CELLS:
        cell_ns *= 2
    count = -(-(to_ns - from_ns) // cell_ns)
    folder = CellFolder(from_ns, to_ns, cell_ns)
    if lines.is_whole:
        for lane in lines.line.lanes:
            folder.add_waits(lane.waits)
    elif isinstance(moments, HasBatches):
        for batch in moments.batches(from_ns, to_ns):
            folder.add_batch(batch)
        folder.add_waits(_scanned_waits(lines.line))
    if folder.is_full:
        notes.append("the heat map lacks the last waits: choose a shorter span")
    heat = Heat(
        begin_ns=from_ns,
        cell_ns=cell_ns,
        cell_count=count,
        lost_records=_lost_records(moments, lines, from_ns, to_ns),
        **_contended_cells(folder, lines.line.snapshot),
    )
    return Incident(span=span, heat=heat, time_line=lines.line, notes=tuple(notes))


def _read_lines(reader: TimeLineReader, from_ns: int, to_ns: int) -> _Lines:
    """Return the time line of the span, or of its end if the span has too many records."""
    try:
        return _Lines(reader.read(from_ns, to_ns), True)
    except TooManyRecordsError as error:
        span_ns = error.span_ns
    while True:
        try:
            return _Lines(reader.read(to_ns - span_ns, to_ns), False)
        except TooManyRecordsError as error:
            span_ns = min(error.span_ns, span_ns // 2)


def _scanned_waits(line: TimeLine) -> list[TimedWait]:
    """Return the waits that scans alone showed: those that go on, above all."""
    return [wait for lane in line.lanes for wait in lane.waits if wait.record.is_sampled]


def _contended_cells(folder: CellFolder, snapshot: Snapshot) -> dict[str, Any]:
    """Return the fields of Heat with the cells of waits in contention."""
    contended = [series for series in folder.folded() if not _is_idle(series, snapshot)]
    steps = byte_planes(b"".join(folded.steps for folded in contended))
    values = byte_planes(b"".join(folded.values for folded in contended))
    return {
        "series": tuple(folded.series for folded in contended),
        "cells": b"".join([*steps, *values]),
        "step_size": len(steps),
        "value_size": len(values),
    }


def byte_planes(numbers: bytes) -> list[bytes]:
    """Return the lowest bytes of numbers of 32 bits, then the next ones, without those all 0."""
    planes = [numbers[number::4] for number in range(4)]
    while len(planes) > 1 and not any(planes[-1]):
        planes.pop()
    return planes


def _is_idle(folded: FoldedSeries, snapshot: Snapshot) -> bool:
    """Return whether the waits of a series are for work, as the snapshot classifies them."""
    series = folded.series
    record = WaitRecord(
        tid=series.tid,
        lock=series.lock,
        kind=folded.kind,
        began_ns=0,
        wait_ns=1,
        hold_ns=None,
        stack=series.stack,
        holder=0,
        site=0,
    )
    return next(timeline_waits.classify([record], snapshot)).idle


def _lost_records(moments: Moments, lines: _Lines, from_ns: int, to_ns: int) -> int:
    if lines.is_whole or not isinstance(moments, KnowsLosses):
        return lines.line.lost_records
    return moments.lost_records(from_ns, to_ns) or 0
