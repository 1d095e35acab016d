"""Time lines of a long span in parts, so that hours of waits need the memory of one part.

Each wait, hold and hand-over belongs to one part: that in which it ended. So nothing is in two
parts, and nothing is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from locktop.collector.analysis import timeline
from locktop.collector.errors import LocktopError
from locktop.collector.extensions.export.nested_slices import open_counts
from locktop.collector.model import (
    Event,
    Flow,
    Frame,
    Notable,
    Snapshot,
    TimedWait,
    TimeLine,
    WaitRecord,
)
from locktop.collector.recording.moments import Moments
from locktop.collector.recording.time_lines import TimeLineReader, TooManyRecordsError

#: Waits of one part of a long span: half a gigabyte.
_PART_RECORDS = 200_000


class TracePart(Struct, frozen=True):
    """The events of a part of a span. Times are nanoseconds since 1970, UTC (``_ns``)."""

    from_ns: int
    to_ns: int
    is_first: bool
    threads: Mapping[int, str]  # name by tid
    waits: Sequence[TimedWait]  # in order of their begin, also those for work
    holds: Sequence[WaitRecord]  # of the locks that threads waited for, in order of their begin
    flows: Sequence[Flow]
    #: The waits in contention that touch the part: those of ``waits``, and some of the next parts.
    touching: Sequence[TimedWait]
    notables: Sequence[Notable]
    lost_records: int
    snapshot: Snapshot  # the newest of the part, with the names and the stacks

    def frames(self, stack: int) -> tuple[Frame, ...]:
        """Return the frames of a stack, innermost first; none if it is not known."""
        return self.snapshot.stacks.get(stack, ())

    def waiter_counts(self) -> Iterator[tuple[int, int, int]]:
        """Yield a lock, a time and the waiters from then on, at each change and lock by lock."""
        spans: dict[int, list[tuple[int, int]]] = {}
        for wait in self.touching:
            # A wait that goes on is still there at the end.
            end_ns = self.to_ns + 1 if wait.is_open else wait.record.got_ns
            spans.setdefault(wait.record.lock, []).append((wait.record.began_ns, end_ns))
        begin_ns = 0 if self.is_first else self.from_ns
        for lock, waits in spans.items():
            for time_ns, count in open_counts(waits, begin_ns, self.to_ns + 1):
                yield lock, time_ns, count


def parts(
    moments: Moments,
    from_ns: int,
    to_ns: int,
    with_earlier: bool,
    max_records: int = _PART_RECORDS,
) -> Iterator[TracePart]:
    """Yield the parts of a span in order.

    Args:
        moments: the past.
        from_ns: the begin of the span.
        to_ns: its end.
        with_earlier: the span begins earlier, with a long wait from before the first snapshot.
        max_records: waits and holds of one part, about.

    Raises:
        LocktopError: there is nothing in the span, or it is damaged.
    """
    reader = TimeLineReader(moments, max_records)
    first_ns, last_ns = reader.bounds()
    from_ns, to_ns = max(from_ns, first_ns), min(to_ns, last_ns)
    if with_earlier:
        from_ns = min(from_ns, first_ns)
    begin_ns, span_ns = from_ns, max(to_ns - from_ns, 0)
    while True:
        end_ns = min(to_ns, begin_ns + span_ns)
        try:
            line = reader.read(begin_ns, end_ns)
        except TooManyRecordsError as error:
            if error.span_ns >= span_ns:
                raise
            span_ns = error.span_ns
            continue
        yield _part(line, is_first=begin_ns == from_ns, is_last=end_ns >= to_ns)
        if end_ns >= to_ns:
            return
        begin_ns = end_ns


def _part(line: TimeLine, is_first: bool, is_last: bool) -> TracePart:
    def has(end_ns: int) -> bool:
        return (is_first or end_ns > line.from_ns) and (is_last or end_ns <= line.to_ns)

    every = sorted(
        (wait for lane in line.lanes for wait in lane.waits), key=lambda wait: wait.record.began_ns
    )
    holds = [record for holds in line.holds.values() for record in holds.records if record.hold_ns]
    return TracePart(
        from_ns=line.from_ns,
        to_ns=line.to_ns,
        is_first=is_first,
        threads={lane.tid: lane.name for lane in line.lanes},
        waits=[
            wait
            for wait in every
            if wait.record.wait_ns and (is_last if wait.is_open else has(wait.record.got_ns))
        ],
        holds=sorted(
            (record for record in holds if has(record.end_ns)), key=lambda record: record.got_ns
        ),
        flows=[flow for flow in line.flows if has(flow.woken_ns)],
        touching=[wait for wait in every if wait.record.wait_ns and not wait.idle],
        notables=[notable for notable in line.notables if has(notable.time_ns)],
        lost_records=line.lost_records,
        snapshot=line.snapshot,
    )


def part_of_snapshot(snapshot: Snapshot) -> TracePart:
    """Return the newest waits of a snapshot, and those that go on.

    Raises:
        LocktopError: the snapshot has no waits, or its time is not known.
    """
    try:
        taken_ns = round(datetime.fromisoformat(snapshot.taken_at).timestamp() * 1000) * 1_000_000
    except ValueError:
        raise LocktopError(f"the snapshot was taken at {snapshot.taken_at!r}: no time") from None
    idle = {(lock.id, entry.stack) for lock in snapshot.locks for entry in lock.wait_stacks
            if entry.idle}  # fmt: skip
    idle_locks = {lock.id for lock in snapshot.locks if lock.idle}
    waits = [
        TimedWait(
            record=_record(event, taken_ns),
            idle=(event.lock, event.stack) in idle or event.lock in idle_locks,
        )
        for event in snapshot.events
    ]
    for thread in snapshot.threads:
        if (wait := thread.waiting_for) is not None:
            began_ns = taken_ns - round(wait.duration_s * 1e9)
            record = WaitRecord(
                tid=thread.tid,
                lock=wait.lock,
                kind=wait.kind,
                began_ns=began_ns,
                wait_ns=taken_ns - began_ns,
                hold_ns=None,
                stack=wait.stack,
                holder=wait.holders[0] if wait.holders else 0,
                site=wait.site,
                is_sampled=True,
            )
            waits.append(TimedWait(record=record, idle=wait.idle, is_open=True))
    if not waits:
        raise LocktopError("the snapshot has no single waits; a recording has them all")
    waits.sort(key=lambda wait: wait.record.began_ns)
    waits = [wait for wait in waits if wait.record.wait_ns]
    return TracePart(
        from_ns=min((wait.record.began_ns for wait in waits), default=taken_ns),
        to_ns=taken_ns,
        is_first=True,
        threads={thread.tid: thread.name for thread in snapshot.threads},
        waits=waits,
        holds=sorted(
            (wait.record for wait in waits if wait.record.hold_ns and not wait.idle),
            key=lambda record: record.got_ns,
        ),
        flows=timeline.flows(waits),
        touching=[wait for wait in waits if not wait.idle],
        notables=(),
        lost_records=0,
        snapshot=snapshot,
    )


def _record(event: Event, taken_ns: int) -> WaitRecord:
    return WaitRecord(
        tid=event.tid,
        lock=event.lock,
        kind=event.kind,
        began_ns=taken_ns - round(event.ago_s * 1e9),
        wait_ns=round(event.wait_s * 1e9),
        hold_ns=None if event.hold_s is None else round(event.hold_s * 1e9),
        stack=event.stack,
        holder=event.holder,
        site=event.site,
        timed_out=event.timed_out,
    )
