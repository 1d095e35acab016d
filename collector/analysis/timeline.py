"""Time lines: lanes of threads, exact sums over cells, hand-overs, and the events of a lane.

A lane is a partition of the time: each nanosecond has one state. So sums over cells are exact at
each zoom level. Time in two waits that overlap counts once. A counted span has the exact sums of a
part of the lane, and not their places in it (timeline_counted.py).
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from locktop.collector.model import (
    CONTENTION_KINDS,
    CountedSpan,
    Flow,
    Lane,
    LaneSpan,
    LaneState,
    ScanSample,
    TimedWait,
    WaitRecord,
    Window,
)
from locktop.collector.model.kinds import READERS_UNNAMED_KINDS

#: The state and the lock of a part of a lane.
CellKey = tuple[LaneState, int]
#: Nanoseconds of one cell by state and lock.
Cell = Mapping[CellKey, int]

_ORDER = {state: number for number, state in enumerate(LaneState)}
#: The clocks of two threads are the same counter; a rounding may lie between.
_ROUNDING_NS = 1000


class _Interval(NamedTuple):
    """A claim to a part of a lane. The smallest tuple of those at one moment decides its state."""

    order: int  # of the state
    later_first: int  # the begin, negative: of two waits the inner one decides
    lock: int
    to_ns: int
    state: LaneState

    @property
    def from_ns(self) -> int:
        """The begin."""
        return -self.later_first


def _interval(from_ns: int, to_ns: int, state: LaneState, lock: int = 0) -> _Interval:
    return _Interval(_ORDER[state], -from_ns, lock, to_ns, state)


def lanes(
    waits: Sequence[TimedWait], samples: Sequence[ScanSample], from_ns: int, to_ns: int
) -> tuple[Lane, ...]:
    """Return the lanes of all threads, the longest wait first.

    Args:
        waits: all waits and holds that touch the span, in order of their begin.
        samples: the scans of the span, and those just before and after it, the oldest first.
        from_ns: the begin of the span.
        to_ns: its end, after the begin.
    """
    by_thread: dict[int, list[_Interval]] = {}
    own: dict[int, list[TimedWait]] = {}
    for wait in waits:
        record = wait.record
        intervals = by_thread.setdefault(record.tid, [])
        if record.wait_ns:
            state = LaneState.IDLE if wait.idle else LaneState.WAITING
            intervals.append(_interval(record.began_ns, record.got_ns, state, record.lock))
            if record.began_ns < to_ns and record.got_ns >= from_ns:
                own.setdefault(record.tid, []).append(wait)
        if record.hold_ns:
            hold = LaneState.HOLDING
            intervals.append(_interval(record.got_ns, record.end_ns, hold, record.lock))
    names = _add_samples(by_thread, samples, from_ns, to_ns)
    lanes_ = []
    for tid, intervals in by_thread.items():
        spans = _resolve(intervals, from_ns, to_ns)
        waited = sum(s.to_ns - s.from_ns for s in spans if s.state is LaneState.WAITING)
        mine = tuple(own.get(tid, ()))
        lanes_.append(
            Lane(tid=tid, name=names.get(tid, ""), spans=spans, waits=mine, wait_ns=waited)
        )
    return tuple(sorted(lanes_, key=lambda lane: (-lane.wait_ns, lane.tid)))


def _add_samples(
    by_thread: dict[int, list[_Interval]],
    samples: Sequence[ScanSample],
    from_ns: int,
    to_ns: int,
) -> dict[int, str]:
    """Add what scans show beside waits; return the names of the threads.

    A scan speaks for the time up to the middle between it and its neighbour. Nothing is known of
    the time between the last scan of one sender and the first scan of another.
    """
    names = {}
    for number, sample in enumerate(samples):
        first = number == 0 or sample.is_first
        last = number == len(samples) - 1 or samples[number + 1].is_first
        begin = sample.time_ns if first else (samples[number - 1].time_ns + sample.time_ns) // 2
        end = sample.time_ns if last else (sample.time_ns + samples[number + 1].time_ns) // 2
        in_sight = begin < to_ns and end >= from_ns
        for tid, thread in sample.threads.items():
            names[tid] = thread.name
            intervals = by_thread.setdefault(tid, [])
            if in_sight:
                intervals.append(_interval(begin, end, thread.state))
            for held in thread.holds:
                if held.duration_s is not None:
                    since_ns = sample.time_ns - round(held.duration_s * 1e9)
                    intervals.append(
                        _interval(since_ns, sample.time_ns, LaneState.HOLDING, held.lock)
                    )
                elif in_sight:
                    intervals.append(_interval(begin, end, LaneState.HOLDING, held.lock))
    return names


def _resolve(intervals: Iterable[_Interval], from_ns: int, to_ns: int) -> tuple[LaneSpan, ...]:
    """Return one state for each moment: the spans fill the time from ``from_ns`` to ``to_ns``."""
    clipped = [
        interval for interval in intervals if interval.from_ns < to_ns and interval.to_ns > from_ns
    ]
    clipped.sort(key=lambda interval: interval.from_ns)
    edges = {from_ns, to_ns}
    for interval in clipped:
        edges.add(max(from_ns, interval.from_ns))
        edges.add(min(to_ns, interval.to_ns))
    points = sorted(edges)
    current: list[_Interval] = []
    spans: list[LaneSpan] = []
    state, lock, began, next_one = LaneState.UNKNOWN, 0, from_ns, 0
    for point in points[:-1]:
        while next_one < len(clipped) and clipped[next_one].from_ns <= point:
            heapq.heappush(current, clipped[next_one])
            next_one += 1
        while current and current[0].to_ns <= point:
            heapq.heappop(current)
        now, lock_now = (current[0].state, current[0].lock) if current else (LaneState.UNKNOWN, 0)
        if (now, lock_now) != (state, lock):
            if point > began:
                spans.append(LaneSpan(from_ns=began, to_ns=point, state=state, lock=lock))
            state, lock, began = now, lock_now, point
    spans.append(LaneSpan(from_ns=began, to_ns=to_ns, state=state, lock=lock))
    return tuple(spans)


# ---- cells ----


def cells(
    spans: Sequence[LaneSpan], window: Window, counted: Iterable[CountedSpan] = ()
) -> list[dict[CellKey, int]]:
    """Return the nanoseconds of each cell by state and lock.

    Args:
        spans: the spans of one lane.
        window: its cells; time of the window outside the spans is in no cell.
        counted: the counted spans of the same lane.
    """
    cells_: list[dict[CellKey, int]] = [{} for _ in range(window.count)]
    for span_of_sums in counted:
        for cell, key, ns in counted_parts(span_of_sums, window):
            cells_[cell][key] = cells_[cell].get(key, 0) + ns
    first = bisect_right(spans, window.from_ns, key=lambda span: span.to_ns)
    for number in range(first, len(spans)):
        span = spans[number]
        if span.from_ns >= window.to_ns:
            break
        key = span.state, span.lock
        for cell, ns in window.parts(span.from_ns, span.to_ns):
            cells_[cell][key] = cells_[cell].get(key, 0) + ns
    return cells_


def counted_parts(counted: CountedSpan, window: Window) -> Iterator[tuple[int, CellKey, int]]:
    """Yield each cell that a counted span touches, and a key with its share of nanoseconds.

    The sums are spread evenly over the span. Rounding loses nothing.
    """
    length_ns = counted.to_ns - counted.from_ns
    at_ns = max(counted.from_ns, window.from_ns) - counted.from_ns
    for cell, part_ns in window.parts(counted.from_ns, counted.to_ns):
        end_ns = at_ns + part_ns
        for key, ns in counted.sums.items():
            share_ns = ns * end_ns // length_ns - ns * at_ns // length_ns
            if share_ns:
                yield cell, key, share_ns
        at_ns = end_ns


def state_sums(cell: Cell) -> dict[LaneState, int]:
    """Return the nanoseconds of a cell by state."""
    sums: dict[LaneState, int] = {}
    for (state, _), ns in cell.items():
        sums[state] = sums.get(state, 0) + ns
    return sums


def longest_lock(cell: Cell) -> int:
    """Return the lock that the thread waited for most in a cell, in contention; 0: none."""
    waits = [(ns, lock) for (state, lock), ns in cell.items() if state is LaneState.WAITING]
    return max(waits, default=(0, 0))[1]


# ---- flows and events ----


def flows(waits: Sequence[TimedWait]) -> tuple[Flow, ...]:
    """Return who released the lock of each contended wait, in order of the ends of the waits.

    The releasing thread is that of the last recorded release before the end of the wait. Without
    one, the thread that had the lock when the wait began is all that is known. Of a rwlock with a
    known writer, that writer counts. Readers that got the lock together did not wake each other.
    """
    releases: dict[int, list[WaitRecord]] = {}
    for wait in waits:
        record = wait.record
        if record.is_release or (record.hold_ns is not None and not record.timed_out):
            releases.setdefault(wait.record.lock, []).append(record)
    ends = {}
    for lock, records in releases.items():
        records.sort(key=lambda record: record.end_ns)
        ends[lock] = [record.end_ns for record in records]
    flows_ = []
    for wait in waits:
        record = wait.record
        if wait.is_open or wait.idle or record.timed_out or not record.wait_ns:
            continue
        if record.kind not in CONTENTION_KINDS and record.lock not in releases:
            continue
        release = _release(record, releases.get(record.lock, ()), ends.get(record.lock, ()))
        from_tid = release.tid if release is not None else record.holder
        if from_tid:
            flows_.append(
                Flow(
                    lock=record.lock,
                    from_tid=from_tid,
                    released_ns=release.end_ns if release is not None else None,
                    to_tid=record.tid,
                    woken_ns=record.got_ns,
                )
            )
    return tuple(sorted(flows_, key=lambda flow: flow.woken_ns))


def _release(
    wait: WaitRecord, releases: Sequence[WaitRecord], ends: Sequence[int]
) -> WaitRecord | None:
    """Return the last release of the wait's lock by another thread during the wait."""
    only = wait.holder if wait.kind in READERS_UNNAMED_KINDS else 0
    index = bisect_right(ends, wait.got_ns + _ROUNDING_NS)
    while index and ends[index - 1] >= wait.began_ns:
        index -= 1
        if releases[index].tid != wait.tid and only in (0, releases[index].tid):
            return releases[index]
    return None


class LaneEvent(NamedTuple):
    """The begin or the end of a wait."""

    time_ns: int
    is_end: bool
    wait: TimedWait


def events(waits: Iterable[TimedWait]) -> list[LaneEvent]:
    """Return the begins and the ends of waits in contention, in order of time."""
    events_ = []
    for wait in waits:
        if wait.idle or not wait.record.wait_ns:
            continue
        events_.append(LaneEvent(wait.record.began_ns, False, wait))
        if not wait.is_open:
            events_.append(LaneEvent(wait.record.got_ns, True, wait))
    return sorted(events_, key=lambda event: event.time_ns)


def event_after(events_: Sequence[LaneEvent], time_ns: int) -> LaneEvent | None:
    """Return the first event after a moment, None without one."""
    index = bisect_right(events_, time_ns, key=lambda event: event.time_ns)
    return events_[index] if index < len(events_) else None


def event_before(events_: Sequence[LaneEvent], time_ns: int) -> LaneEvent | None:
    """Return the last event before a moment, None without one."""
    index = bisect_left(events_, time_ns, key=lambda event: event.time_ns)
    return events_[index - 1] if index else None


def wait_in(waits: Iterable[TimedWait], from_ns: int, to_ns: int) -> TimedWait | None:
    """Return the wait with the most time in a span; a wait in contention goes first."""
    best, most = None, (-1, -1)
    for wait in waits:
        record = wait.record
        if record.began_ns >= to_ns:
            break
        part = min(to_ns, record.got_ns) - max(from_ns, record.began_ns)
        if part >= 0 and record.wait_ns and (int(not wait.idle), part) > most:
            best, most = wait, (int(not wait.idle), part)
    return best
