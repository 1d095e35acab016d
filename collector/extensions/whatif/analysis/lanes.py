"""Puts brief threads together: a thread that starts others, and waits for their ends, needs them.

The brief threads of one round after the other are one thread here, a lane. Its time between two of
them is a wait for the thread that starts the next one. The end of each ends the wait of the thread
that joins it. So the replay has the same number of threads all the time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.extensions.whatif.analysis.evidence import Evidence, ThreadTimes
from locktop.collector.model import Kind, MarkRecord, SignalRecord, WaitRecord

_Record = TypeVar("_Record", WaitRecord, SignalRecord, MarkRecord)

#: A thread whose end another one waits for ends so long after its last record at most, nanoseconds.
_LATE_NS = 50_000_000
#: Ids of the conditions that stand for starts and ends of a lane; no real lock has such a number.
_STARTS, _ENDS = -1_000_000, -2_000_000


class _Life(Struct):
    """A brief thread: its first and last event, and the join that waited for its end.

    Nobody has waited for a thread that lives on at the end of the span.
    """

    tid: int
    first_ns: int
    last_ns: int
    started_ns: int = 0  # 0: not known
    join: WaitRecord | None = None
    starter: int = 0  # the tid of the thread that waits for it
    lane: int = 0

    @property
    def length_ns(self) -> int:
        """For how long the thread lived."""
        return self.end_ns - (self.started_ns or self.first_ns)

    @property
    def end_ns(self) -> int:
        """When the thread ended."""
        if self.join is not None and self.join.wait_ns:
            return self.join.got_ns - 1
        return self.last_ns + 1


def form_lanes(evidence: Evidence) -> Evidence:
    """Return the evidence with lanes in place of the brief threads whose ends others waited for."""
    lives = _lives(evidence)
    joins = sorted((record for record in evidence.records if record.kind is Kind.JOIN), key=_got_ns)
    if not joins:
        return evidence
    _match(lives, joins)
    for life in lives:
        if life.join is None and life.first_ns > joins[-1].got_ns:
            life.starter = joins[-1].tid
    joined = sorted((life for life in lives if life.starter), key=_first)
    if not joined:
        return evidence
    _find_starts(joined, _moments(evidence))
    lanes = _assign(joined)
    lane_of = {life.tid: life.lane for life in joined}
    matched = {id(life.join) for life in joined}
    records = [record for record in evidence.records if id(record) not in matched]
    starts, signals = _starts(lanes)
    ends, more = _ends(joined)
    samples = [
        sample._replace(tid=lane_of[sample.tid]) if sample.tid in lane_of else sample
        for sample in evidence.samples
    ]
    times = _times(evidence, joined, len(lanes))
    return replace(
        evidence,
        records=sorted(
            [*(_move_to_lane(record, lane_of) for record in records), *starts, *ends], key=_began
        ),
        signals=sorted(
            [*(_move_to_lane(signal, lane_of) for signal in evidence.signals), *signals, *more],
            key=_time,
        ),
        marks=[_move_to_lane(mark, lane_of) for mark in evidence.marks],
        samples=samples,
        times={**evidence.times, **dict.fromkeys(lanes, times)},
    )


def _move_to_lane(entry: _Record, lane_of: Mapping[int, int]) -> _Record:
    """Return a record of a brief thread as one of its lane."""
    return replace(entry, tid=lane_of[entry.tid]) if entry.tid in lane_of else entry


def _got_ns(record: WaitRecord) -> int:
    return record.got_ns


def _began(record: WaitRecord) -> int:
    return record.began_ns


def _time(signal: SignalRecord) -> int:
    return signal.time_ns


def _first(life: _Life) -> int:
    return life.first_ns


def _times(evidence: Evidence, joined: Sequence[_Life], lanes: int) -> ThreadTimes:
    """Return the times of one lane.

    The kernel forgets the times of a thread that ends. But the process keeps the CPU time of all
    its threads. Readings at some moments of some lives say which share of the lives was queued.
    """
    cpu_ns = max(0, evidence.cpu_ns - sum(thread.cpu_ns for thread in evidence.times.values()))
    begun = [
        (reading.time_ns - life.started_ns, reading.queued_ns)
        for life in joined
        if life.started_ns and (reading := evidence.begun.get(life.tid)) is not None
    ]
    age_ns, queued_ns = (sum(parts) for parts in zip(*begun, strict=True)) if begun else (0, 0)
    lived_ns = sum(life.length_ns for life in joined)
    return ThreadTimes(
        name=_name(evidence, joined),
        cpu_ns=cpu_ns // lanes,
        queued_ns=lived_ns * queued_ns // age_ns // lanes if age_ns > 0 else 0,
    )


def _name(evidence: Evidence, joined: Sequence[_Life]) -> str:
    """Return the name of the lanes: ``started by main``."""
    starter = evidence.times.get(joined[0].starter)
    return f"started by {starter.name}" if starter is not None else "started threads"


def _lives(evidence: Evidence) -> list[_Life]:
    """Return the threads that do not last for the whole span, by their records."""
    lives: dict[int, _Life] = {}
    for record in evidence.records:
        if record.tid in evidence.times or record.kind is Kind.JOIN:
            continue
        life = lives.setdefault(record.tid, _Life(record.tid, record.began_ns, record.end_ns))
        life.first_ns = min(life.first_ns, record.began_ns)
        life.last_ns = max(life.last_ns, record.end_ns)
    return sorted(lives.values(), key=lambda life: life.last_ns)


def _match(lives: Sequence[_Life], joins: Sequence[WaitRecord]) -> None:
    """Find whose end each join waited for: of the threads that are over, the last one.

    Then find the threads of the joins that did not wait. These threads may be over for long.
    """
    ends_ns = [life.last_ns for life in lives]
    waited, others = (
        [join for join in joins if bool(join.wait_ns) is has_waited] for has_waited in (True, False)
    )
    for join in (*waited, *others):
        number = bisect_right(ends_ns, join.got_ns) - 1
        least_ns = join.got_ns - _LATE_NS if join.wait_ns else 0
        while number >= 0 and lives[number].last_ns > least_ns:
            if lives[number].join is None:
                lives[number].join, lives[number].starter = join, join.tid
                break
            number -= 1


def _assign(joined: Iterable[_Life]) -> dict[int, list[_Life]]:
    """Give each thread a lane that is free then. Returns the threads of each lane, in order."""
    lanes: dict[int, list[_Life]] = {}
    for life in joined:
        free = (lane for lane, of_lane in lanes.items() if of_lane[-1].end_ns < life.first_ns)
        life.lane = next(free, life.tid)
        lanes.setdefault(life.lane, []).append(life)
    return lanes


def _moments(evidence: Evidence) -> Mapping[int, list[int]]:
    """Return when each thread came out of a wait for the end of another one."""
    moments: dict[int, list[int]] = {}
    for record in evidence.records:
        if record.kind is Kind.JOIN:
            moments.setdefault(record.tid, []).append(record.got_ns)
    return {tid: sorted(times) for tid, times in moments.items()}


def _find_starts(joined: Iterable[_Life], moments: Mapping[int, Sequence[int]]) -> None:
    """Find when the threads were started: after the last end that their starter waited for."""
    for life in joined:
        times = moments.get(life.starter, [])
        number = bisect_right(times, life.first_ns) - 1
        if number >= 0 and times[number] + 3 < life.first_ns:
            life.started_ns = times[number] + 2


def _starts(
    lanes: Mapping[int, Sequence[_Life]],
) -> tuple[list[WaitRecord], list[SignalRecord]]:
    """Return the waits of lanes for their next thread, and the signals that end these waits."""
    waits, signals = [], []
    for lane, lives in lanes.items():
        for before, life in pairwise(lives):
            if before.end_ns + 1 < life.started_ns:
                waits.append(_wait(lane, _STARTS - lane, before.end_ns + 1, life.started_ns + 1))
                signals.append(_signal(life.starter, _STARTS - lane, life.started_ns))
    return waits, signals


def _ends(joined: Iterable[_Life]) -> tuple[list[WaitRecord], list[SignalRecord]]:
    """Return the waits for the ends of threads, and the signals that end these waits."""
    waits, signals = [], []
    for life in joined:
        join = life.join
        if join is not None and join.wait_ns:
            lock = _ENDS - life.lane
            waits.append(_wait(join.tid, lock, join.began_ns, join.got_ns))
            signals.append(_signal(life.lane, lock, life.end_ns))
    return waits, signals


def _wait(tid: int, lock: int, began_ns: int, got_ns: int) -> WaitRecord:
    return WaitRecord(
        tid=tid,
        lock=lock,
        kind=Kind.COND,
        began_ns=began_ns,
        wait_ns=max(1, got_ns - began_ns),
        hold_ns=None,
        stack=0,
        holder=0,
        site=0,
    )


def _signal(tid: int, lock: int, time_ns: int) -> SignalRecord:
    return SignalRecord(tid=tid, lock=lock, kind=Kind.COND, time_ns=time_ns)
