"""A time line as plain text: for a pipe, a file or a ticket."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from locktop.collector.analysis.timeline import cells, counted_parts
from locktop.collector.model import Flow, Lane, LaneState, TimedWait, TimeLine, Window
from locktop.collector.render.words import units
from locktop.collector.render.words.blame import hand_over
from locktop.collector.render.words.lock_kind import name_with_kind
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.source_location import short_location
from locktop.collector.render.words.timeline import (
    LEGEND,
    axis,
    glyph,
    letters_of,
    lock_letter,
    time_of_day,
    time_zone,
)
from locktop.collector.render.words.wait_holders import holder_sentences

_NAME_WIDTH, _WAIT_WIDTH = 14, 8
_MAX_WAITS = 10
_MAX_FRAMES = 6
_MAX_LOCKS = 8
_MAX_NOTABLES = 20


def render(time_line: TimeLine, width: int = 80) -> str:
    """Return the lanes of all threads, the locks, and the longest waits with their stacks.

    Args:
        time_line: the time line.
        width: columns of the text, at least 60.
    """
    index = SnapshotIndex(time_line.snapshot)
    lines = [*_heading(time_line, index), ""]
    window = Window(
        from_ns=time_line.from_ns,
        to_ns=time_line.to_ns,
        count=max(20, width - _NAME_WIDTH - _WAIT_WIDTH - 2),
    )
    letters = letters_of([lock for lock, _ in waited_by_lock(time_line)])
    lines += [f"{'':{_NAME_WIDTH}} {axis(window)}", *_lanes(time_line, index, window, letters), ""]
    lines += _locks(time_line, index, letters)
    lines += _notables(time_line)
    lines += _waits(time_line, index)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def waited_by_lock(time_line: TimeLine) -> list[tuple[int, int]]:
    """Return the nanoseconds waited for each lock in contention, the most first."""
    sums: Counter[int] = Counter()
    for lane in time_line.lanes:
        for span in lane.spans:
            if span.state is LaneState.WAITING:
                sums[span.lock] += span.to_ns - span.from_ns
    whole = Window(from_ns=time_line.from_ns, to_ns=time_line.to_ns, count=1)
    for counted in time_line.counted:
        for _, (_, lock), ns in counted_parts(counted, whole):
            sums[lock] += ns
    return sums.most_common()


def _heading(time_line: TimeLine, index: SnapshotIndex) -> Iterator[str]:
    process = index.snapshot.process
    span_s = (time_line.to_ns - time_line.from_ns) / 1e9
    yield (
        f"{process.comm} {process.pid} on {index.snapshot.host}: {units.duration(span_s)} from"
        f" {time_of_day(time_line.from_ns)} to {time_of_day(time_line.to_ns)}"
        f" {time_zone(time_line.to_ns)}"
    )
    if time_line.is_sampled:
        yield "Samples: the waits are estimates, known as well as the scans lie close."
    if time_line.lost_records:
        yield (
            f"{units.exact(time_line.lost_records)} records were overwritten unread:"
            " waits are missing"
        )
    if time_line.counted:
        counted_s = sum(span.to_ns - span.from_ns for span in time_line.counted) / 1e9
        yield (
            f"{units.duration(counted_s)} of this have too many waits to read: exact sums of"
            " counters, no single waits and no holds"
        )
    yield LEGEND


def _lanes(
    time_line: TimeLine, index: SnapshotIndex, window: Window, letters: dict[int, str]
) -> Iterator[str]:
    still = 0
    for lane in time_line.lanes:
        parts = cells(lane.spans, window, lane.counted)
        if not any(
            state in (LaneState.WAITING, LaneState.HOLDING) for p in parts for state, _ in p
        ):
            still += 1
            continue
        lengths = [
            window.edge_ns(column + 1) - window.edge_ns(column) for column in range(window.count)
        ]
        signs = [glyph(cell, ns)[0] for cell, ns in zip(parts, lengths, strict=True)]
        waited = units.duration(lane.wait_ns / 1e9, _WAIT_WIDTH) if lane.wait_ns else "-"
        name = index.thread_name(lane.tid)[:_NAME_WIDTH]
        yield f"{name:{_NAME_WIDTH}} {''.join(signs)} {waited:>{_WAIT_WIDTH}}"
        if lane.wait_ns:
            lock_signs = [
                lock_letter(cell, ns, letters) for cell, ns in zip(parts, lengths, strict=True)
            ]
            locks = [sign if state is LaneState.WAITING else " " for sign, state in lock_signs]
            yield f"{'':{_NAME_WIDTH}} {''.join(locks)}"
    if still:
        yield f"{units.counted(still, 'thread')} without contention and holds left out"


def _locks(time_line: TimeLine, index: SnapshotIndex, letters: dict[int, str]) -> Iterator[str]:
    sums = waited_by_lock(time_line)
    if not sums:
        yield "No thread waited for a lock."
        return
    yield "Waited for (a large letter: half of a cell or more)"
    for lock, ns in sums[:_MAX_LOCKS]:
        sign = letters.get(lock, "*")
        yield f"  {sign}  {units.duration(ns / 1e9):>10}  {index.lock_name(lock)}"
    if len(sums) > _MAX_LOCKS:
        left = sum(ns for _, ns in sums[_MAX_LOCKS:])
        more = units.counted(len(sums) - _MAX_LOCKS, "lock")
        yield f"     {units.duration(left / 1e9):>10}  {more} more"
    yield ""


def _notables(time_line: TimeLine) -> Iterator[str]:
    if not time_line.notables:
        return
    yield "Alerts and marks"
    for notable in time_line.notables[:_MAX_NOTABLES]:
        yield f"  {time_of_day(notable.time_ns)} {notable.kind}: {notable.text}"
    if len(time_line.notables) > _MAX_NOTABLES:
        yield f"  and {len(time_line.notables) - _MAX_NOTABLES} more"
    yield ""


def longest_waits(lanes: Sequence[Lane]) -> list[TimedWait]:
    """Return the waits in contention, the longest first."""
    waits = [wait for lane in lanes for wait in lane.waits if not wait.idle]
    return sorted(waits, key=lambda wait: (-wait.record.wait_ns, wait.record.began_ns))


def _waits(time_line: TimeLine, index: SnapshotIndex) -> Iterator[str]:
    waits = longest_waits(time_line.lanes)
    if not waits:
        return
    by_wait = {(flow.to_tid, flow.lock, flow.woken_ns): flow for flow in time_line.flows}
    yield f"The longest of {units.counted(len(waits), 'wait')}"
    for wait in waits[:_MAX_WAITS]:
        record = wait.record
        yield f"  {wait_sentence(wait, index)}"
        holders = holder_sentences(wait, time_line, index)
        for sentence in holders:
            yield f"    {sentence}"
        flow = by_wait.get((record.tid, record.lock, record.got_ns))
        if flow is not None and (flow.released_ns is not None or not holders):
            yield f"    {flow_sentence(flow, index)}"
        elif record.holder and not holders:
            yield f"    held by {index.thread_name(record.holder)} when the wait began"
        for frame in index.stack(record.stack)[:_MAX_FRAMES]:
            yield f"      {short_location(frame)}"


def wait_sentence(wait: TimedWait, index: SnapshotIndex) -> str:
    """Return who waited from when, how long and for which lock, in one line."""
    record = wait.record
    about = "about " if record.is_sampled and not wait.is_open and not wait.is_lower_bound else ""
    last = "has waited" if wait.is_open else "waited"
    end = ", without success" if record.timed_out else ""
    what = name_with_kind(record.kind, index.lock_name(record.lock))
    return (
        f"{time_of_day(record.began_ns, 6)} {index.thread_name(record.tid)} {last} {about}"
        f"{units.lasting(record.wait_ns / 1e9, wait.is_lower_bound)} for {what}"
        f"{end}"
    )


def flow_sentence(flow: Flow, index: SnapshotIndex) -> str:
    """Return who released the lock, and how long the woken thread took to get it."""
    who = index.thread_name(flow.from_tid)
    if flow.released_ns is None:
        return f"{who} had the lock when the wait began; its release is not recorded"
    gap_s = max(0, flow.woken_ns - flow.released_ns) / 1e9
    deed, _ = hand_over(index.lock_kind(flow.lock))
    return (
        f"{who} {deed} at {time_of_day(flow.released_ns, 6)}, {units.duration(gap_s)} before"
        f" {index.thread_name(flow.to_tid)} got it"
    )
