"""Reads time lines from the past of a process: a memory, a recording, or a followed process."""

from __future__ import annotations

import heapq
import itertools
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Protocol, runtime_checkable

from msgspec.structs import replace

from locktop.collector.analysis import (
    figures_since,
    timeline,
    timeline_holds,
    timeline_waits,
)
from locktop.collector.analysis.futex_releases import join_releases
from locktop.collector.analysis.span_snapshot import span_snapshot
from locktop.collector.analysis.timeline_counted import Pair, apply_counters
from locktop.collector.errors import LocktopError
from locktop.collector.model import (
    Frame,
    Notable,
    NotableKind,
    ScanSample,
    Snapshot,
    TimeLine,
    WaitRecord,
)
from locktop.collector.recording.moments import Moments
from locktop.collector.recording.record_density import counted_pairs

#: With ring records, scans show what a thread does beside waits, and so many of them are enough.
MAX_SCANS = 300
#: Of the longest pauses between two scans, both ends are always read.
_MAX_PAUSES, _PAUSE_NS = 50, 5_000_000_000
#: Records of one time line. A million need ten seconds and 500 MB.
MAX_RECORDS = 400_000
#: A time line begins at most so long before the first snapshot. The time may be forged.
MAX_EARLIER_NS = 15 * 60 * 1_000_000_000
#: The part of a span whose records are counted before all are read.
_PROBED = 64
_LEAST_SPAN_NS = 1_000_000
#: So many records are read at once, about. The parts of the work that are done with the scans, and
#: with the records.
_PIECE, _SCANS_PART, _RECORDS_PART = 5_000, 0.4, 0.8


class TooManyRecordsError(LocktopError):
    """A span has more records than one time line takes. ``span_ns``: a length that fits."""

    def __init__(self, span_ns: int, limit: int) -> None:
        super().__init__(
            f"more than {limit:,} waits and holds are in this span of time; choose a shorter one,"
            f" of {span_ns / 1e9:.3g} s"
        )
        self.span_ns = span_ns


@runtime_checkable
class KnowsLosses(Protocol):
    """A past whose ring records do not come from the scans: the scans do not know the losses."""

    def lost_records(self, from_ns: int, to_ns: int) -> int | None:
        """Return how many records of a span are known to be lost; None: the scans know."""
        ...


class TimeLineReader:
    """Reads time lines of one process. One thread at a time reads; others wait for it."""

    def __init__(
        self, moments: Moments, max_records: int = MAX_RECORDS, *, takes_counters: bool = False
    ) -> None:
        """Args:
        moments: the past.
        max_records: the most records of one time line.
        takes_counters: where there are more records, a time line has sums from counters.
        """
        self._moments = moments
        self._max_records = max_records
        self._takes_counters = takes_counters
        self._lock = threading.Lock()
        self._samples: dict[int, ScanSample] = {}  # by time
        self._stacks: dict[int, tuple[Frame, ...]] = {}
        self._sites: dict[int, Frame] = {}
        #: The begin of the oldest long wait, by the first snapshot and the moment of the wait.
        self._earliest: tuple[tuple[int, Notable], int] | None = None

    def bounds(self) -> tuple[int, int]:
        """Return the times of the oldest and of the newest snapshot.

        A long wait before the oldest snapshot is part of the past: then its begin comes first.

        Raises:
            LocktopError: there are fewer than two snapshots, so there is no time between them.
        """
        times = self._moments.times_ns()
        if len(times) < 2 or times[-1] <= times[0]:
            raise LocktopError("a time line needs two snapshots; there is no second one yet")
        return self._begin(times[0]), times[-1]

    def _begin(self, first_ns: int) -> int:
        """Return the begin of the oldest known long wait before the first snapshot, or that."""
        earlier = [
            notable
            for notable in self._moments.notables()
            if notable.kind is NotableKind.WAIT
            and first_ns - MAX_EARLIER_NS <= notable.time_ns < first_ns
        ]
        if not earlier:
            return first_ns
        wait = earlier[0]
        if self._earliest is None or self._earliest[0] != (first_ns, wait):
            touching = self._moments.records(wait.time_ns - 1, wait.time_ns + 1)
            begins = [record.began_ns for record in touching if record.tid == wait.tid]
            begin_ns = max(min(begins, default=wait.time_ns), first_ns - MAX_EARLIER_NS)
            self._earliest = (first_ns, wait), begin_ns
        return self._earliest[1]

    def notables(self) -> Sequence[Notable]:
        """Return the alerts and marks, the oldest first."""
        return self._moments.notables()

    def read(
        self,
        from_ns: int,
        to_ns: int,
        step: Callable[[float], None] = lambda part: None,
        max_records: int | None = None,
        max_scans: int | None = None,
    ) -> TimeLine:
        """Return the time line of a span, which is cut at the oldest and the newest snapshot.

        Args:
            from_ns: the begin of the span.
            to_ns: its end.
            step: gets the part 0..1 of the work that is done, again and again. A LocktopError that
                this function raises ends the reading.
            max_records: the most records of this reading, of a reader that takes counters; None:
                twice those of the reader.
            max_scans: the most scans of this reading, spread over the span. Of a sampled process
                they are the newest ones, and the line is as short: only its scans have waits.

        Raises:
            TooManyRecordsError: the span is too long for so many records, and the reader takes no
                counters.
            LocktopError: there is nothing in the span, or what is there is damaged.
        """
        with self._lock:
            step(0.0)
            first_ns, last_ns = self.bounds()
            from_ns, to_ns = max(from_ns, first_ns), min(to_ns, last_ns)
            if from_ns >= to_ns:
                raise LocktopError("there are no snapshots in this span of time")
            newest = self._scan(to_ns)
            times = self._times_of(from_ns, to_ns)
            chosen = _scans_to_read(times, newest.is_sampled, max_scans)
            if not self._takes_counters:
                records = self._records(from_ns, to_ns)
                samples = self._read_samples(chosen, step)
                return self._line(from_ns, to_ns, newest, samples, records)
            if newest.is_sampled and len(chosen) < len(times):
                from_ns = max(from_ns, chosen[0])  # a long wait may begin before all scans
            samples = self._read_samples(chosen, step)
            limit = 2 * self._max_records if max_records is None else max_records
            pairs, expected = counted_pairs(
                self._moments, samples, limit, partial(self._lost_records, samples)
            )
            step(_SCANS_PART)
            stretches = _beside(pairs, from_ns, to_ns)
            records = self._records_of(stretches, expected, step)
            line = self._line(from_ns, to_ns, newest, samples, records)
            if pairs:
                lost = sum(self._lost_records(samples, *stretch) for stretch in stretches)
                line = replace(apply_counters(line, pairs), lost_records=lost)
            return replace(line, is_coarse=max_scans is not None and max_scans < len(times))

    def _line(
        self,
        from_ns: int,
        to_ns: int,
        newest: Snapshot,
        samples: Sequence[ScanSample],
        records: Sequence[WaitRecord],
    ) -> TimeLine:
        snapshot = replace(
            newest,
            stacks={**self._stacks, **newest.stacks},
            sites={**self._sites, **newest.sites},
        )
        waits = timeline_waits.join(
            timeline_waits.classify(join_releases(records, snapshot), snapshot),
            timeline_waits.waits_in_scans(samples),
        )
        return TimeLine(
            from_ns=from_ns,
            to_ns=to_ns,
            lanes=timeline.lanes(waits, samples, from_ns, to_ns),
            flows=tuple(
                flow for flow in timeline.flows(waits) if from_ns <= flow.woken_ns <= to_ns
            ),
            notables=tuple(
                notable
                for notable in self._moments.notables()
                if from_ns <= notable.time_ns <= to_ns
            ),
            is_sampled=newest.is_sampled,
            snapshot=snapshot,
            lost_records=self._lost_records(samples, from_ns, to_ns),
            holds=timeline_holds.holds_by_lock(waits, samples),
        )

    def read_span(
        self,
        from_ns: int,
        to_ns: int,
        locks: Collection[int] = (),
        step: Callable[[float], None] = lambda part: None,
    ) -> Snapshot:
        """Return a snapshot with the waits of a span alone, and the records lost in the span.

        Where the reader takes counters, the snapshot has all waits between two scans, which are
        just before and after the span. ``duration_s`` is the time between them.

        Args:
            from_ns: the begin of the span.
            to_ns: its end.
            locks: the only locks that count; none: all.
            step: as for ``read``.

        Raises:
            LocktopError: as ``read``.
        """
        line = self.read(from_ns, to_ns, step)
        if line.counted:
            return self._counted_span(from_ns, to_ns, locks)
        waits = [wait for lane in line.lanes for wait in lane.waits]
        snapshot = span_snapshot(line.snapshot, waits, from_ns, to_ns, locks=locks)
        return replace(snapshot, lost_events=line.lost_records)

    def _counted_span(self, from_ns: int, to_ns: int, locks: Collection[int]) -> Snapshot:
        with self._lock:
            times = self._moments.times_ns()
            later = self._scan(times[min(bisect_left(times, to_ns), len(times) - 1)])
            earlier = figures_since.baseline_of(later, self._scan(from_ns))
            snapshot = figures_since.since(later, earlier)
            chosen = [lock for lock in snapshot.locks if not locks or lock.id in locks]
            stacks = {**self._stacks, **later.stacks}
            return replace(
                snapshot, locks=tuple(chosen), stacks=stacks, lost_events=0, deadlocks=(), events=()
            )

    def _records(self, from_ns: int, to_ns: int) -> Sequence[WaitRecord]:
        """Return the records of a span, unless there are too many."""
        span_ns = to_ns - from_ns
        part = self._moments.records(to_ns - span_ns // _PROBED, to_ns)
        expected = len(part) * _PROBED
        if expected > 2 * self._max_records and span_ns > _LEAST_SPAN_NS:
            raise self._too_many(span_ns, expected)
        records = self._moments.records(from_ns, to_ns)
        if len(records) > 2 * self._max_records and span_ns > _LEAST_SPAN_NS:
            raise self._too_many(span_ns, len(records))
        return records

    def _too_many(self, span_ns: int, expected: int) -> TooManyRecordsError:
        fitting = max(_LEAST_SPAN_NS, span_ns * self._max_records // expected)
        return TooManyRecordsError(fitting, 2 * self._max_records)

    def _records_of(
        self,
        stretches: Sequence[tuple[int, int]],
        expected: float,
        step: Callable[[float], None],
    ) -> list[WaitRecord]:
        """Return the records of parts of a span, the oldest part first.

        Args:
            stretches: the begin and the end of each part.
            expected: how many records that are, about.
            step: as for ``read``.
        """
        whole_ns = sum(end_ns - begin_ns for begin_ns, end_ns in stretches)
        piece_ns = max(1, round(whole_ns / (1 + expected // _PIECE)))
        records: list[WaitRecord] = []
        read_until_ns, read_ns = 0, 0
        for begin_ns, end_ns in stretches:
            for piece_begin_ns in range(begin_ns, end_ns, piece_ns):
                piece_end_ns = min(end_ns, piece_begin_ns + piece_ns)
                # An earlier record touched the piece before, too.
                records += [
                    record
                    for record in self._moments.records(piece_begin_ns, piece_end_ns)
                    if record.began_ns >= read_until_ns
                ]
                read_until_ns = piece_end_ns
                read_ns += piece_end_ns - piece_begin_ns
                step(_SCANS_PART + (_RECORDS_PART - _SCANS_PART) * read_ns / whole_ns)
        return records

    def _lost_records(self, samples: Sequence[ScanSample], from_ns: int, to_ns: int) -> int:
        if isinstance(self._moments, KnowsLosses):
            lost = self._moments.lost_records(from_ns, to_ns)
            if lost is not None:
                return lost
        before = [sample for sample in samples if sample.time_ns <= from_ns][-1:] or samples
        after = [sample for sample in samples if sample.time_ns >= to_ns] or samples[-1:]
        return max(0, after[0].lost_records - before[0].lost_records)

    def _times_of(self, from_ns: int, to_ns: int) -> Sequence[int]:
        """Return the times of the scans of a span, and of those just before and after."""
        times = self._moments.times_ns()
        return times[max(0, bisect_right(times, from_ns) - 1) : bisect_left(times, to_ns) + 1]

    def _read_samples(
        self, chosen: Sequence[int], step: Callable[[float], None]
    ) -> list[ScanSample]:
        for number, time_ns in enumerate(chosen):
            if time_ns not in self._samples:
                self._samples[time_ns] = timeline_waits.sample(self._scan(time_ns), time_ns)
                step(_SCANS_PART * number / len(chosen))
        oldest = self._moments.times_ns()[0]
        self._samples = {
            time_ns: sample for time_ns, sample in self._samples.items() if time_ns >= oldest
        }
        return [self._samples[time_ns] for time_ns in chosen]

    def _scan(self, time_ns: int) -> Snapshot:
        snapshot = self._moments.snapshot_at(time_ns)
        self._stacks.update(snapshot.stacks)
        self._sites.update(snapshot.sites)
        return snapshot


def _beside(pairs: Sequence[Pair], from_ns: int, to_ns: int) -> list[tuple[int, int]]:
    """Return the parts of a span that lie between no two of these scans."""
    stretches, at_ns = [], from_ns
    for before, after in pairs:
        if before.time_ns > at_ns:
            stretches.append((at_ns, before.time_ns))
        at_ns = max(at_ns, after.time_ns)
    if at_ns < to_ns:
        stretches.append((at_ns, to_ns))
    return stretches


def _scans_to_read(times: Sequence[int], is_sampled: bool, max_scans: int | None) -> Sequence[int]:
    """Return the scans to read, of those at ``times``; see TimeLineReader.read."""
    if is_sampled:
        return times if max_scans is None else times[-max_scans:]
    count = MAX_SCANS if max_scans is None else max_scans
    if len(times) <= count:
        return times
    return sorted({*_some(times, count), *_beside_pauses(times)})


def _beside_pauses(times: Sequence[int]) -> list[int]:
    """Return the times at both ends of the long pauses: the sender of a stream may have changed."""
    pauses = heapq.nlargest(
        _MAX_PAUSES, itertools.pairwise(times), key=lambda pair: pair[1] - pair[0]
    )
    return [time_ns for pair in pauses if pair[1] - pair[0] >= _PAUSE_NS for time_ns in pair]


def _some(times: Sequence[int], count: int) -> list[int]:
    """Return ``count`` of the times, evenly, with the first and the last."""
    last = len(times) - 1
    return [times[number * last // (count - 1)] for number in range(count)]
