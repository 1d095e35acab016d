"""The observations of a program in a span of time, on which predictions rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.model import MarkRecord, SignalRecord, WaitRecord
from locktop.collector.model.kinds import HELD_KINDS


class StateSample(NamedTuple):  # there are thousands
    """The state of a thread at one moment."""

    tid: int
    time_ns: int  # nanoseconds since 1970
    is_ready: bool  # on a CPU, or waits for one


class ThreadTimes(Struct, frozen=True):
    """The kernel's times of a thread in the span, nanoseconds."""

    name: str
    cpu_ns: int
    queued_ns: int  # ready, without a CPU


class BegunThread(NamedTuple):
    """A thread that began in the span, as the kernel last counted."""

    time_ns: int  # of the reading, nanoseconds since 1970
    queued_ns: int  # since the thread's begin: ready, without a CPU


class Evidence(Struct, frozen=True):
    """All that is known of a span. Times are nanoseconds since 1970, UTC (``_ns``)."""

    from_ns: int
    to_ns: int
    records: Sequence[WaitRecord]  # in the order of ``began_ns``
    signals: Sequence[SignalRecord]
    samples: Sequence[StateSample]
    times: Mapping[int, ThreadTimes]  # by tid
    losses: Sequence[tuple[int, int]]  # spans in which records were lost
    cpus: int  # that the process may use
    others_cpus: float = 0.0  # CPUs that other programs used
    cpu_ns: int = 0  # CPU time of the whole program in the span, also of threads that ended
    cpu_limit: float | None = None  # CPUs that a control group allows; None: no limit
    #: share of the threads that waited at the end of the span, unobserved by the library
    unobserved_share: float = 0.0
    #: by tid: the share of the thread's sleep in which it waits for requests (epoll_wait)
    request_shares: Mapping[int, float] = {}
    #: By tid: when the thread's own time in the span begins and ends, if not with the span. A hold
    #: may go on at the begin, and a wait at the end: these belong to the parts beside.
    edges: Mapping[int, tuple[int, int]] = {}
    #: The waits that go on at the end of the span. As records, they end just after it.
    open_waits: Sequence[WaitRecord] = ()
    #: By tid: the last wait, if it goes on at the end, and not for a lock that threads hold.
    last_waits: Mapping[int, WaitRecord] = {}
    marks: Sequence[MarkRecord] = ()  # the oldest first
    #: ids of the futexes that are locks: threads wait for them in contention
    futex_locks: Set[int] = frozenset()
    timed_futexes: Set[int] = frozenset()  # those of them whose holds after a wait are timed
    #: By id: locks whose holds are known in part, and the share of the span that these take.
    partly_seen: Mapping[int, float] = {}
    begun: Mapping[int, BegunThread] = {}  # by tid

    @property
    def kept_cpus(self) -> float:
        """How many CPUs the program does not get: others use them, or a limit forbids them."""
        limit = self.cpus if self.cpu_limit is None else self.cpu_limit
        return max(self.others_cpus, self.cpus - limit)

    @property
    def span_ns(self) -> int:
        """The length of the span."""
        return self.to_ns - self.from_ns

    @property
    def active(self) -> set[int]:
        """The threads with records or marks, by tid."""
        return {record.tid for record in self.records} | {mark.tid for mark in self.marks}


def part(evidence: Evidence, from_ns: int, to_ns: int) -> Evidence:
    """Return the evidence of a part of the span. All samples stay: they tell of the whole.

    A record belongs to the part in which the thread got the lock. A mark within a hold belongs to
    the part of this hold.
    """
    share = (to_ns - from_ns) / evidence.span_ns
    records = []
    begins: dict[int, int] = {}
    ends: dict[int, int] = {}
    marks_ends: dict[int, int] = {}  # of holds that go on after the part
    last_waits: dict[int, WaitRecord] = {}
    for record in (*evidence.records, *evidence.open_waits):
        got_ns = record.got_ns  # a long recording has most of its records outside of the part
        if got_ns < from_ns:
            end_ns = got_ns + (record.hold_ns or 0)
            if end_ns > begins.get(record.tid, from_ns):
                begins[record.tid] = end_ns
        elif got_ns < to_ns:
            records.append(record)
            marks_ends[record.tid] = max(marks_ends.get(record.tid, to_ns), record.end_ns)
        elif record.began_ns < ends.get(record.tid, to_ns):
            ends[record.tid] = record.began_ns
            last_waits[record.tid] = record
    marks = [
        mark
        for mark in evidence.marks
        if begins.get(mark.tid, from_ns) <= mark.time_ns < marks_ends.get(mark.tid, to_ns)
    ]
    tids = {record.tid for record in records} | {mark.tid for mark in marks}
    return replace(
        evidence,
        from_ns=from_ns,
        to_ns=to_ns,
        records=records,
        signals=[signal for signal in evidence.signals if from_ns <= signal.time_ns < to_ns],
        times={tid: _scale(thread, share) for tid, thread in evidence.times.items()},
        losses=[(begin, end) for begin, end in evidence.losses if begin < to_ns and end > from_ns],
        marks=marks,
        edges={tid: (begins.get(tid, from_ns), ends.get(tid, to_ns)) for tid in tids},
        last_waits={tid: wait for tid, wait in last_waits.items() if wait.kind not in HELD_KINDS},
    )


def parts(evidence: Evidence, count: int, max_records: int) -> list[Evidence]:
    """Return parts of the span without lost records, each with few enough records.

    Args:
        evidence: of the whole span.
        count: the number of parts, if each of as many equal steps has a part without losses.
        max_records: the most records and marks of a part; a part with more is cut at its end.
    """
    step_ns = evidence.span_ns // count
    shares = []
    for number in range(count):
        step = evidence.from_ns + number * step_ns, evidence.from_ns + (number + 1) * step_ns
        begin_ns, end_ns = _longest_gap(evidence.losses, *step)
        if begin_ns >= end_ns:
            continue
        whole = part(evidence, begin_ns, end_ns)
        moments = [record.got_ns for record in whole.records] + [
            mark.time_ns for mark in whole.marks
        ]
        if len(moments) > max_records:
            whole = part(evidence, begin_ns, sorted(moments)[max_records])
        if whole.span_ns > 0 and moments:
            shares.append(whole)
    return shares


def _longest_gap(losses: Sequence[tuple[int, int]], from_ns: int, to_ns: int) -> tuple[int, int]:
    """Return the longest part of a span that meets no loss; an empty one if there is none."""
    best, begin_ns = (from_ns, from_ns), from_ns
    for loss_ns, end_ns in [*sorted(losses), (to_ns, to_ns)]:
        gap_ns = min(loss_ns, to_ns) - begin_ns
        if gap_ns > best[1] - best[0]:
            best = begin_ns, begin_ns + gap_ns
        begin_ns = max(begin_ns, end_ns)
    return best


def _scale(times: ThreadTimes, share: float) -> ThreadTimes:
    return replace(
        times, cpu_ns=round(times.cpu_ns * share), queued_ns=round(times.queued_ns * share)
    )
