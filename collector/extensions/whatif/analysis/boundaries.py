"""Orders what the records say of a thread: when it asked for, got and released each lock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from locktop.collector.model import Kind, MarkRecord, SignalRecord, WaitRecord
from locktop.collector.model.kinds import HELD_KINDS


class At(IntEnum):
    """The event of a boundary. At one moment the lower number comes first."""

    GOT = 0  # a wait is over; or there was none, and the thread asked at this moment
    RELEASED = 1
    SIGNALLED = 2
    MARKED = 3
    REQUESTED = 4


class Boundary(NamedTuple):  # tuples sort fast
    """A moment at which a thread calls a lock function, comes back from one, or sets a mark."""

    time_ns: int
    at: At
    lock: int  # id; 0 for marks
    kind: Kind | None  # None: a mark
    site: int  # return address; 0 for signals and marks
    is_shared: bool
    timed_out: bool
    wakes_all: bool


def thread_boundaries(
    records: Iterable[WaitRecord],
    signals: Iterable[SignalRecord],
    marks: Iterable[MarkRecord] = (),
) -> dict[int, list[Boundary]]:
    """Return the boundaries of each thread, in the order of time."""
    by_tid: dict[int, list[Boundary]] = {}
    for record in records:
        by_tid.setdefault(record.tid, []).extend(_record_boundaries(record))
    for signal in signals:
        by_tid.setdefault(signal.tid, []).append(_signal_boundary(signal))
    marked = set()
    for mark in marks:
        marked.add(mark.tid)
        by_tid.setdefault(mark.tid, []).append(_mark_boundary(mark))
    for tid, of_thread in by_tid.items():
        of_thread.sort(key=_order)
        _end_waits_first(of_thread)
        if tid in marked:
            by_tid[tid] = _marks_after_waits(of_thread)
    return by_tid


def _record_boundaries(record: WaitRecord) -> Iterator[Boundary]:
    times = [(record.got_ns, At.GOT)]
    if record.wait_ns:
        times.append((record.began_ns, At.REQUESTED))
    if record.hold_ns is not None and record.kind in HELD_KINDS and not record.timed_out:
        times.append((record.end_ns, At.RELEASED))
    for time_ns, moment in times:
        yield Boundary(
            time_ns=time_ns,
            at=moment,
            lock=record.lock,
            kind=record.kind,
            site=record.site,
            is_shared=record.is_shared,
            timed_out=record.timed_out,
            wakes_all=False,
        )


def _signal_boundary(signal: SignalRecord) -> Boundary:
    return Boundary(
        time_ns=signal.time_ns,
        at=At.SIGNALLED,
        lock=signal.lock,
        kind=signal.kind,
        site=0,
        is_shared=False,
        timed_out=False,
        wakes_all=signal.wakes_all,
    )


def _mark_boundary(mark: MarkRecord) -> Boundary:
    return Boundary(
        time_ns=mark.time_ns,
        at=At.MARKED,
        lock=0,
        kind=None,
        site=0,
        is_shared=False,
        timed_out=False,
        wakes_all=False,
    )


def _end_waits_first(boundaries: list[Boundary]) -> None:
    """Put the end of a wait before the begin of the next one, where rounding mixed them up.

    A thread whose wait for a condition is over waits for the mutex from the same moment on.
    """
    for number in range(1, len(boundaries) - 1):
        before, middle, after = boundaries[number - 1 : number + 2]
        if (
            middle.at is At.REQUESTED
            and after.at is At.GOT
            and (before.at, before.lock)
            == (At.REQUESTED, after.lock)
            != (At.REQUESTED, middle.lock)
        ):
            boundaries[number : number + 2] = after._replace(time_ns=middle.time_ns), middle


def _marks_after_waits(boundaries: Iterable[Boundary]) -> list[Boundary]:
    """Return the boundaries with each mark within a wait moved to the end of this wait.

    A signal handler may set such a mark. Of a wait, nothing is the thread's own time.
    """
    ordered: list[Boundary] = []
    within: list[Boundary] = []
    is_waiting = False
    for boundary in boundaries:
        if boundary.at is At.MARKED and is_waiting:
            within.append(boundary)
            continue
        is_waiting = boundary.at is At.REQUESTED
        ordered.append(boundary)
        if not is_waiting:
            ordered += [mark._replace(time_ns=boundary.time_ns) for mark in within]
            within.clear()
    return [*ordered, *within]


def _order(boundary: Boundary) -> tuple[int, int]:
    return boundary.time_ns, boundary.at
