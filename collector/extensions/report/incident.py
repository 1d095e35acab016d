"""The subject of a report: the snapshots of an incident, and the waits before it over time."""

from __future__ import annotations

from msgspec import Struct

from locktop.collector.model import TimeLine
from locktop.collector.recording.chosen_moment import Span


class CellSeries(Struct, frozen=True):
    """The cells of one lock, thread and stack, which follow each other in ``Heat.cells``."""

    lock: int
    tid: int
    stack: int
    count: int  # entries


class Heat(Struct, frozen=True):
    """The waits in contention in cells of time, by lock, thread and stack."""

    begin_ns: int  # nanoseconds since 1970
    cell_ns: int  # length of a cell
    cell_count: int
    series: tuple[CellSeries, ...]
    #: The steps of all series, then their values (native/reader/cells.h). Of each, the lowest bytes
    #: of all numbers come first, then the next bytes, and so on: packed, this takes fewer bytes.
    cells: bytes
    step_size: int  # bytes of a step, and of a value: as many as the largest one needs
    value_size: int
    lost_records: int  # known to be lost


class Incident(Struct, frozen=True):
    """All that a report shows."""

    span: Span
    heat: Heat | None = None  # None: a snapshot alone has no waits over time
    #: The exact time line of the span, or of its end where the span has too many records.
    time_line: TimeLine | None = None
    notes: tuple[str, ...] = ()  # what the report lacks, one line each
