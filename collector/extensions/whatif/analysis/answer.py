"""Answers what changes of the locks would gain: predictions, or the reason why there are none."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import NamedTuple

from locktop.collector.extensions.whatif.analysis.background import busy_share, is_starved
from locktop.collector.extensions.whatif.analysis.boundaries import thread_boundaries
from locktop.collector.extensions.whatif.analysis.changes import is_dependent
from locktop.collector.extensions.whatif.analysis.critical_path import path_shares
from locktop.collector.extensions.whatif.analysis.evidence import Evidence
from locktop.collector.extensions.whatif.analysis.predict import SpanReplays, predict
from locktop.collector.extensions.whatif.analysis.programs import ProgramBuilder, group_of
from locktop.collector.extensions.whatif.analysis.simulated_program import MakeSimulation
from locktop.collector.extensions.whatif.analysis.throughput import counted
from locktop.collector.extensions.whatif.model import (
    Change,
    ChangeKind,
    LockPressureShare,
    Prediction,
    RefusedChange,
    ThroughputUnit,
    WhatIf,
    WhatIfRefusal,
)
from locktop.collector.model.kinds import HELD_KINDS

#: Parts of the span, the records of each, and the fewest parts without losses.
PARTS, _MAX_RECORDS, _MIN_PARTS = 8, 6000, 4
#: Fewer rounds in all say too little.
_MIN_ROUNDS = 100
#: By so much the replay may differ from the recording, and the parts from their median.
_MAX_REPLAY_ERROR, _MAX_PHASE_CHANGE = 0.05, 1.5
#: The largest share of records of threads that begin or end in the span.
_MAX_BRIEF = 0.2
#: The largest share of threads in waits that the library does not observe, and of the threads' time
#: in waits for futexes that are locks.
MAX_UNOBSERVED = 0.1
#: The largest share of their sleep in which threads may wait for requests, if their number changes.
_MAX_REQUESTS = 0.3
#: Locks that the suggestions are about, and the least share of the threads' time in their waits.
_MAX_LOCKS, _MIN_WAIT_SHARE = 3, 0.002
#: The part of the replays that are without a change, about.
_BASE_PART = 0.2
#: A group of more threads for each CPU may be too large.
_MANY_THREADS = 4


class Question(NamedTuple):
    """The changes to predict, and the unit of the throughput."""

    changes: Sequence[Change]  # none: the likely ones
    unit: ThroughputUnit | None = None  # None: marks if there are enough, else rounds


def answer(
    evidence: Evidence,
    question: Question,
    simulator: MakeSimulation,
    on_replay: Callable[[float, Prediction | None], None] = lambda part, best: None,
) -> WhatIf:
    """Predict the throughput after changes.

    Args:
        evidence: of a span at the level that records all.
        question: the changes, or none.
        simulator: runs the replays.
        on_replay: gets the part 0..1 of the replays that is done, and the best change so far.
    """
    on_replay(0.0, None)
    unit, evidence, counted_parts = counted(
        evidence, question.unit, PARTS, _MAX_RECORDS, _MIN_ROUNDS
    )
    spans = [SpanReplays(ProgramBuilder(part, unit).build(), simulator) for part in counted_parts]
    recorded = [sum(span.program.rounds_per_s.values()) for span in spans]
    replayed = []
    for number, span in enumerate(spans, 1):
        replayed.append(sum(span.base.rounds_per_s.values()))
        on_replay(_BASE_PART * number / len(spans), None)
    mean = sum(recorded) / len(recorded) if recorded else 0.0
    ratio = sum(replayed) / sum(recorded) if mean else 0.0
    pressure = _pressure(evidence, counted_parts)
    changes = question.changes or [
        change
        for change in suggested(evidence, pressure)
        if _hindrance(evidence, spans, change) is None
    ]
    refusal = _refusal(evidence, spans, recorded, ratio, changes)
    predictions: list[Prediction] = []
    refused: list[RefusedChange] = []
    for number, change in enumerate(changes if refusal is None else (), 1):
        result = _try_change(evidence, spans, change)
        if isinstance(result, Prediction):
            predictions.append(result)
        else:
            refused.append(result)
        part = _BASE_PART + (1 - _BASE_PART) * number / len(changes)
        on_replay(part, min(predictions, key=_gain, default=None))
    if refused and not predictions:
        refusal = refused[0].reason
    return WhatIf(
        span_s=evidence.span_ns / 1e9,
        parts=len(spans),
        rounds_per_s=mean,
        unit=unit,
        replayed=ratio,
        refusal=refusal,
        predictions=tuple(sorted(predictions, key=_gain)),
        pressure=pressure,
        cpus=evidence.cpus,
        cpus_used=sum(thread.cpu_ns for thread in evidence.times.values()) / evidence.span_ns,
        refused=tuple(refused),
        partly_seen=evidence.partly_seen,
        changed_at=(_change_of(counted_parts, recorded) if refusal is WhatIfRefusal.PHASES else ""),
    )


def _change_of(counted_parts: Sequence[Evidence], recorded: Sequence[float]) -> str:
    """Return when the throughput changed most: the begin of a part, ISO 8601, UTC."""

    def contrast(number: int) -> float:
        before, after = recorded[:number], recorded[number:]
        return abs(sum(after) / len(after) - sum(before) / len(before))

    first = max(range(1, len(recorded)), key=contrast)
    began_s = counted_parts[first].from_ns / 1e9
    return datetime.fromtimestamp(began_s, UTC).isoformat(timespec="milliseconds")


def _try_change(
    evidence: Evidence, spans: Sequence[SpanReplays], change: Change
) -> Prediction | RefusedChange:
    """Return the prediction of one change, or why there is none."""
    hindrance = _hindrance(evidence, spans, change)
    if hindrance is not None:
        return RefusedChange(change=change, reason=hindrance)
    stopped = RefusedChange(change=change, reason=WhatIfRefusal.STOPPED)
    return predict(spans, change) or stopped


def _hindrance(
    evidence: Evidence, spans: Iterable[SpanReplays], change: Change
) -> WhatIfRefusal | None:
    """Return why nobody can predict a change; None: all is well."""
    if change.lock in evidence.futex_locks:
        return WhatIfRefusal.UNRECORDED
    if change.kind is not ChangeKind.THREADS:
        return None
    if any(is_dependent(span.program, change.group) for span in spans):
        return WhatIfRefusal.DEPENDENT
    shares = [
        evidence.request_shares.get(tid, 0.0)
        for tid in {record.tid for record in evidence.records}
        if tid in evidence.times and group_of(evidence.times[tid].name) == change.group
    ]
    waits_for_requests = sum(shares) > _MAX_REQUESTS * len(shares)
    return WhatIfRefusal.REQUESTS if waits_for_requests else None


def _gain(prediction: Prediction) -> float:
    return -prediction.ratio


def _refusal(
    evidence: Evidence,
    spans: Sequence[SpanReplays],
    recorded: Sequence[float],
    ratio: float,
    changes: Sequence[Change],
) -> WhatIfRefusal | None:
    """Return why nothing can be predicted; None: all is well."""
    max_futex_waits = MAX_UNOBSERVED if changes else _MIN_WAIT_SHARE
    if _futex_wait_share(evidence) > max_futex_waits:
        return WhatIfRefusal.UNRECORDED
    if len(spans) < _MIN_PARTS:
        return WhatIfRefusal.LOST if evidence.losses else WhatIfRefusal.FEW
    rounds = sum(
        rate * span.program.span_ns / 1e9 for rate, span in zip(recorded, spans, strict=True)
    )
    if rounds < _MIN_ROUNDS:
        return WhatIfRefusal.FEW
    brief = sum(record.tid not in evidence.times for record in evidence.records)
    if brief > _MAX_BRIEF * len(evidence.records):
        return WhatIfRefusal.BRIEF
    if evidence.unobserved_share > MAX_UNOBSERVED:
        return WhatIfRefusal.UNOBSERVED
    active = evidence.active
    times = {tid: thread for tid, thread in evidence.times.items() if tid in active}
    if is_starved(times, busy_share(evidence), evidence.span_ns):
        return WhatIfRefusal.STARVED
    median = sorted(recorded)[len(recorded) // 2]
    # One part may have met another program that took the CPUs for a moment.
    inner = sorted(recorded)[1:-1]
    if not inner[0] * _MAX_PHASE_CHANGE >= median >= inner[-1] / _MAX_PHASE_CHANGE:
        return WhatIfRefusal.PHASES
    if abs(ratio - 1) > _MAX_REPLAY_ERROR:
        return WhatIfRefusal.REPLAY
    return None


def _futex_wait_share(evidence: Evidence) -> float:
    """Return the share of all threads' time in waits for futexes that are locks."""
    waits = [record for record in evidence.records if record.lock in evidence.futex_locks]
    threads = len({record.tid for record in evidence.records}) or 1
    return sum(record.wait_ns for record in waits) / (evidence.span_ns * threads)


def suggested(evidence: Evidence, pressure: Iterable[LockPressureShare]) -> list[Change]:
    """Return the likely changes: of the locks that are waited for most, and of large groups."""
    changes = []
    for share in list(pressure)[:_MAX_LOCKS]:
        if share.wait_share >= _MIN_WAIT_SHARE:
            changes.append(Change(kind=ChangeKind.HOLD, amount=0.5, lock=share.lock))
            changes.append(Change(kind=ChangeKind.SPLIT, amount=8, lock=share.lock))
    active = evidence.active
    names = sorted(group_of(thread.name) for tid, thread in evidence.times.items() if tid in active)
    for group, members in groupby(names):
        if len(list(members)) > _MANY_THREADS * evidence.cpus:
            few = 2 * evidence.cpus
            changes.append(Change(kind=ChangeKind.THREADS, amount=few, group=group))
    return changes


def _pressure(
    evidence: Evidence, counted_parts: Sequence[Evidence]
) -> tuple[LockPressureShare, ...]:
    """Return the share of all threads' time that went into waits for each lock, in each part."""
    threads = len({record.tid for record in (*evidence.records, *evidence.open_waits)}) or 1
    waits = _waits_by_lock(evidence, counted_parts)
    paths: dict[int, float] = {}
    for part in counted_parts:
        shares = path_shares(
            thread_boundaries(part.records, part.signals), part.from_ns, part.to_ns
        )
        for lock, share in shares.items():
            paths[lock] = paths.get(lock, 0.0) + share / len(counted_parts)
    rows = [
        LockPressureShare(
            lock=lock,
            wait_share=sum(lock_waits[lock] for lock_waits in waits)
            / (sum(part.span_ns for part in counted_parts) * threads),
            wait_shares=tuple(
                lock_waits[lock] / (part.span_ns * threads)
                for lock_waits, part in zip(waits, counted_parts, strict=True)
            ),
            path_share=min(1.0, paths.get(lock, 0.0)),
        )
        for lock in set().union(*waits, paths)
    ]
    return tuple(sorted(rows, key=lambda row: (-row.wait_share, -row.path_share, row.lock)))


def _waits_by_lock(evidence: Evidence, counted_parts: Sequence[Evidence]) -> list[Counter[int]]:
    """Return the nanoseconds of each part that threads waited for each lock."""
    waits = [Counter[int]() for _ in counted_parts]
    ends_ns = [part.to_ns for part in counted_parts]
    for record in (*evidence.records, *evidence.open_waits):
        if not record.wait_ns or record.kind not in HELD_KINDS:
            continue
        for number in range(bisect_right(ends_ns, record.began_ns), len(counted_parts)):
            begin_ns = max(record.began_ns, counted_parts[number].from_ns)
            if begin_ns >= record.got_ns:
                break
            waits[number][record.lock] += min(record.got_ns, ends_ns[number]) - begin_ns
    return waits
