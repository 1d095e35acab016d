"""Collects the evidence for predictions: from a live process, or from a recording."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from typing import NamedTuple

from msgspec import Struct

from locktop.collector.analysis.futex_releases import join_releases
from locktop.collector.errors import LocktopError, reason_of
from locktop.collector.extensions.whatif.analysis.answer import PARTS
from locktop.collector.extensions.whatif.analysis.evidence import (
    Evidence,
    StateSample,
    ThreadTimes,
)
from locktop.collector.extensions.whatif.open_records import open_records
from locktop.collector.extensions.whatif.thread_sampling import ThreadSampling, ended, has_ended
from locktop.collector.linux.cpu_limit import cpu_limit
from locktop.collector.model import (
    MarkRecord,
    SignalRecord,
    Snapshot,
    ThreadState,
    WaitRecord,
)
from locktop.collector.model.kinds import TIMED_BY_WAKES_KINDS
from locktop.collector.recording.moments import HasMarks, HasSignals, Moments
from locktop.collector.recording.scan_time import scan_time_ns
from locktop.collector.recording.time_lines import KnowsLosses
from locktop.collector.shm import slot_batch
from locktop.collector.shm.ring_drain import RingDrain
from locktop.collector.shm.slot_batch import SlotBatch
from locktop.collector.sources import levels
from locktop.collector.sources.base import Source

#: Seconds of one batch, and the longest pause between two copies of the rings.
_BATCH_S, _PAUSE_S = 0.02, 0.002
#: Seconds at the level before, for the cost of the records.
_BEFORE_S = 1.0
#: Records that are decoded, about, and the steps of the span that have the same number of them.
_MAX_RECORDS, _STEPS = 400_000, PARTS
_READY = frozenset({ThreadState.RUNNING, ThreadState.RUNNABLE})
_NS = 1_000_000_000


class Observed(Struct, frozen=True):
    """The evidence of a live process."""

    evidence: Evidence
    snapshot: Snapshot  # from the end, with all names
    recording_cost: float | None  # throughput while all was recorded, as a multiple of before
    level_before: str
    level_after: str  # read after the end


def recording_s(duration_s: float) -> float:
    """Return how long observe() records, about: for ``duration_s``, and before at the old level."""
    return _lead_s(duration_s) + duration_s


def _lead_s(duration_s: float) -> float:
    return min(_BEFORE_S, duration_s / 4)


def why_not_observed(snapshot: Snapshot) -> str:
    """Return why a process cannot be recorded; "" if it can."""
    pid = snapshot.process.pid
    if snapshot.is_sampled:
        return (
            f"whatif needs the library; process {pid} runs without it: start it with `locktop run"
            " -- COMMAND`"
        )
    return f"process {pid} has ended" if snapshot.ended else ""


def observe(
    source: Source,
    pid: int,
    duration_s: float,
    on_records: Callable[[float, int], None] = lambda part, records: None,
) -> Observed:
    """Record all holds and signals of a process for some time.

    Args:
        source: the process with the library; the caller closes it.
        pid: the same process.
        duration_s: seconds.
        on_records: gets the part 0..1 of the time that is over, and the records so far.

    Raises:
        LocktopError: the process runs without the library, has ended, or did not record all.
    """
    on_records(0.0, 0)
    first = source.scan()
    if reason := why_not_observed(first):
        raise LocktopError(reason)
    levels.check_free(pid)
    time.sleep(_lead_s(duration_s))
    second = source.scan()
    # Losses from before the recording do not count.
    drain = source.drain()
    if drain is None or second.ended:
        raise LocktopError(f"process {pid} has ended")
    with closing(_Drained(drain)) as drained:
        recorded_all = _record_all(
            source, pid, duration_s, lambda part: on_records(part, drained.count)
        )
    sampling, third, fourth = recorded_all.sampling, recorded_all.begin, recorded_all.end
    if fourth.ended:
        raise ended(pid)
    last = source.scan(resolve=True)
    evidence = _evidence(pid, drained, sampling, fourth, last)
    before, meanwhile = _acquired_per_s(first, second), _acquired_per_s(third, fourth)
    return Observed(
        evidence=evidence,
        snapshot=last,
        recording_cost=meanwhile / before if before and meanwhile else None,
        level_before=recorded_all.level_before,
        level_after=recorded_all.level_after,
    )


def _evidence(
    pid: int, drained: _Drained, sampling: ThreadSampling, at_end: Snapshot, named: Snapshot
) -> Evidence:
    """Return the evidence. ``named``: the snapshot with the types of futexes."""
    from_ns, to_ns = sampling.from_ns, sampling.to_ns
    drained.keep_enough(from_ns, to_ns)
    names = {thread.tid: thread.name for thread in at_end.threads}
    records = join_releases(drained.records(from_ns, to_ns), named)
    still = open_records(at_end, scan_time_ns(at_end, time.time_ns()), records, to_ns)
    return Evidence(
        from_ns=from_ns,
        to_ns=to_ns,
        records=sorted([*records, *still.holds], key=_began),
        open_waits=still.waits,
        signals=drained.signals(from_ns, to_ns),
        marks=drained.marks(from_ns, to_ns),
        samples=sampling.samples,
        times=sampling.times(names),
        losses=drained.losses(from_ns),
        cpus=at_end.process.cpus or os.cpu_count() or 1,
        others_cpus=sampling.others_cpus(),
        cpu_ns=sampling.cpu_ns,
        cpu_limit=cpu_limit(pid),
        unobserved_share=unobserved_share(at_end),
        request_shares=sampling.request_shares(),
        futex_locks=_futex_locks(named),
        timed_futexes=_timed_futexes(named),
        begun=sampling.begun,
    )


def _began(record: WaitRecord) -> int:
    return record.began_ns


class _RecordedAll(NamedTuple):
    """The samples and the scans of the time in which a process recorded all."""

    sampling: ThreadSampling
    begin: Snapshot
    end: Snapshot
    level_before: str
    level_after: str


def _record_all(
    source: Source, pid: int, duration_s: float, on_part: Callable[[float], None]
) -> _RecordedAll:
    recording = levels.AllRecorded(pid)
    try:
        recording.begin()
        begin = source.scan()
        with closing(
            ThreadSampling(pid, [thread.tid for thread in begin.threads if thread.alive])
        ) as sampling:
            began = time.monotonic()

            def check() -> None:
                recording.check()
                on_part(min(1.0, (time.monotonic() - began) / duration_s))

            sampling.sample(duration_s, check)
        end = source.scan()
    except (LocktopError, OSError) as error:
        if has_ended(pid):
            raise ended(pid) from error
        if isinstance(error, OSError):
            raise LocktopError(f"cannot record process {pid}: {reason_of(error)}") from error
        raise
    finally:
        recording.end()
    return _RecordedAll(sampling, begin, end, recording.level_before, recording.level_after)


def unobserved_share(snapshot: Snapshot) -> float:
    """Return the share of the threads that wait where the library sees nothing."""
    living = sum(thread.alive for thread in snapshot.threads)
    return len(snapshot.unobserved_waiters) / living if living else 0.0


def _acquired_per_s(earlier: Snapshot, later: Snapshot) -> float:
    """Return the acquisitions a second between two scans."""
    counts = [
        sum(lock.acquisitions or 0 for lock in snapshot.locks) for snapshot in (earlier, later)
    ]
    return (counts[1] - counts[0]) / max(later.duration_s - earlier.duration_s, 1e-9)


class _Drained:
    """The records of a process, as a thread of its own drains them."""

    def __init__(self, drain: RingDrain) -> None:
        self._drain = drain
        self._batches: list[SlotBatch] = []
        self._lost: list[tuple[int, int]] = []
        self.count = 0  # records so far
        self._is_stopped = False
        self._fault: LocktopError | None = None
        self._thread = threading.Thread(target=self._run, name="lock records", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        last_ns = time.time_ns()
        try:
            while not self._is_stopped:
                batch = self._drain.take(_BATCH_S, _PAUSE_S).slots
                if batch.lost:
                    self._lost.append((last_ns, batch.time_ns))
                last_ns = batch.time_ns
                self._batches.append(batch)
                self.count += batch.packed + batch.mark_count
        except LocktopError as error:
            self._fault = error

    def close(self) -> None:
        self._is_stopped = True
        self._drain.hurry()
        self._thread.join()
        self._drain.close()

    def keep_enough(self, from_ns: int, to_ns: int) -> None:
        """Leave out what no replay needs: of each step of the span, all but the first records."""
        kept: list[SlotBatch] = []
        counts = Counter[int]()
        begin_ns = from_ns
        for batch in self._batches:
            step = (batch.time_ns - from_ns) * _STEPS // (to_ns - from_ns)
            if counts[step] > _MAX_RECORDS // _STEPS:
                self._lost.append((begin_ns, batch.time_ns))
            else:
                kept.append(batch)
            counts[step] += batch.packed + batch.mark_count
            begin_ns = batch.time_ns
        self._batches = kept

    def records(self, from_ns: int, to_ns: int) -> list[WaitRecord]:
        """Return the records of a span, in the order of their begin. Raises LocktopError."""
        if self._fault is not None:
            raise self._fault
        records: list[WaitRecord] = []
        for batch in self._batches:
            records += slot_batch.decode_span(batch, from_ns, to_ns)
        return sorted(records, key=_began)

    def signals(self, from_ns: int, to_ns: int) -> list[SignalRecord]:
        """Return the signals of a span, the oldest first."""
        signals: list[SignalRecord] = []
        for batch in self._batches:
            signals += slot_batch.decode_signals(batch, from_ns, to_ns)
        return sorted(signals, key=lambda signal: signal.time_ns)

    def marks(self, from_ns: int, to_ns: int) -> list[MarkRecord]:
        """Return the marks of a span, the oldest first."""
        marks: list[MarkRecord] = []
        for batch in self._batches:
            marks += slot_batch.decode_marks(batch, from_ns, to_ns)
        return sorted(marks, key=lambda mark: mark.time_ns)

    def losses(self, from_ns: int) -> list[tuple[int, int]]:
        """Return the spans with losses that end after a moment."""
        return [loss for loss in self._lost if loss[1] > from_ns]


def why_not_replayed(snapshot: Snapshot) -> str:
    """Return why a recording that ends with this snapshot has no predictions; "" if it may."""
    if snapshot.level == "all":
        return ""
    return (
        f"the recording has the level {snapshot.level}; whatif needs one with the level all:"
        " `locktop ctl -p PID --level all` before `locktop record`"
    )


def recorded(moments: Moments, from_ns: int, to_ns: int) -> tuple[Evidence, Snapshot]:
    """Return the evidence of a span of a recording, and its last snapshot.

    The states of threads are known at the snapshots alone.

    Raises:
        LocktopError: the recording is damaged, or has no records of holds.
    """
    times_ns = [time_ns for time_ns in moments.times_ns() if from_ns <= time_ns <= to_ns]
    if len(times_ns) < 2:
        raise LocktopError("whatif needs a recording of several snapshots")
    first, last = moments.snapshot_at(times_ns[0]), moments.snapshot_at(times_ns[-1])
    if reason := why_not_replayed(last):
        raise LocktopError(reason)
    from_ns, to_ns = times_ns[0], times_ns[-1]
    samples: list[StateSample] = []
    queued: dict[int, float] = {}
    process_cpu_s = 0.0
    for time_ns in times_ns[1:]:
        snapshot = moments.snapshot_at(time_ns)
        process_cpu_s += snapshot.process.cpu_share * snapshot.interval_s
        for thread in snapshot.threads:
            if thread.alive:
                samples.append(StateSample(thread.tid, time_ns, thread.state in _READY))
                runnable = thread.time.runnable if thread.time is not None else 0.0
                part_s = runnable * snapshot.interval_s
                queued[thread.tid] = queued.get(thread.tid, 0.0) + part_s
    used_s = {thread.tid: thread.cpu_s for thread in first.threads}
    records = join_releases(moments.records(from_ns, to_ns), last)
    still = open_records(last, to_ns, records, to_ns)
    signals = moments.signals(from_ns, to_ns) if isinstance(moments, HasSignals) else ()
    return (
        Evidence(
            from_ns=from_ns,
            to_ns=to_ns,
            records=sorted([*records, *still.holds], key=_began),
            open_waits=still.waits,
            signals=signals,
            marks=moments.marks(from_ns, to_ns) if isinstance(moments, HasMarks) else (),
            samples=samples,
            times={
                thread.tid: ThreadTimes(
                    name=thread.name,
                    cpu_ns=max(0, round((thread.cpu_s - used_s.get(thread.tid, 0.0)) * _NS)),
                    queued_ns=round(queued.get(thread.tid, 0.0) * _NS),
                )
                for thread in last.threads
                if thread.alive
            },
            losses=_losses(moments, from_ns, to_ns),
            cpus=last.process.cpus or 1,
            cpu_ns=round(process_cpu_s * _NS),
            unobserved_share=unobserved_share(last),
            futex_locks=_futex_locks(last),
            timed_futexes=_timed_futexes(last),
        ),
        last,
    )


def _futex_locks(snapshot: Snapshot) -> frozenset[int]:
    return frozenset(
        lock.id for lock in snapshot.locks if lock.kind in TIMED_BY_WAKES_KINDS and not lock.idle
    )


def _timed_futexes(snapshot: Snapshot) -> frozenset[int]:
    return frozenset(
        lock.id for lock in snapshot.locks if lock.kind in TIMED_BY_WAKES_KINDS and lock.hold_timed
    )


def _losses(moments: Moments, from_ns: int, to_ns: int) -> list[tuple[int, int]]:
    """Return the parts of the span in which records were lost."""
    if not isinstance(moments, KnowsLosses):
        return []
    parts, losses = 40, []
    for number in range(parts):
        begin, end = (from_ns + (to_ns - from_ns) * part // parts for part in (number, number + 1))
        if moments.lost_records(begin, end):
            losses.append((begin, end))
    return losses
