"""The observations of a program in a span of time, on which predictions rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
        return {one.tid for one in self.records} | {one.tid for one in self.marks}


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
    for one in (*evidence.records, *evidence.open_waits):
        got_ns = one.got_ns  # a long recording has most of its records outside of the part
        if got_ns < from_ns:
            end_ns = got_ns + (one.hold_ns or 0)
            if end_ns > begins.get(one.tid, from_ns):
                begins[one.tid] = end_ns
        elif got_ns < to_ns:
            records.append(one)
            marks_ends[one.tid] = max(marks_ends.get(one.tid, to_ns), one.end_ns)
        elif one.began_ns < ends.get(one.tid, to_ns):
            ends[one.tid] = one.began_ns
            last_waits[one.tid] = one
    marks = [
        one
        for one in evidence.marks
        if begins.get(one.tid, from_ns) <= one.time_ns < marks_ends.get(one.tid, to_ns)
    ]
    tids = {one.tid for one in records} | {one.tid for one in marks}
    return replace(
        evidence,
        from_ns=from_ns,
        to_ns=to_ns,
        records=records,
        signals=[one for one in evidence.signals if from_ns <= one.time_ns < to_ns],
        times={tid: _scaled(one, share) for tid, one in evidence.times.items()},
        losses=[(begin, end) for begin, end in evidence.losses if begin < to_ns and end > from_ns],
        marks=marks,
        edges={tid: (begins.get(tid, from_ns), ends.get(tid, to_ns)) for tid in tids},
        last_waits={tid: one for tid, one in last_waits.items() if one.kind not in HELD_KINDS},
    )


def parts(evidence: Evidence, count: int, max_records: int) -> list[Evidence]:
    """Return parts of the span without lost records, each with few enough records.

    Args:
        evidence: of the whole span.
        count: the number of parts, if each of as many equal steps has a part without losses.
        max_records: the most records and marks of a part; a part with more is cut at its end.
    """
    step_ns = evidence.span_ns // count
    found = []
    for number in range(count):
        step = evidence.from_ns + number * step_ns, evidence.from_ns + (number + 1) * step_ns
        begin_ns, end_ns = _longest_gap(evidence.losses, *step)
        if begin_ns >= end_ns:
            continue
        whole = part(evidence, begin_ns, end_ns)
        moments = [one.got_ns for one in whole.records] + [one.time_ns for one in whole.marks]
        if len(moments) > max_records:
            whole = part(evidence, begin_ns, sorted(moments)[max_records])
        if whole.span_ns > 0 and moments:
            found.append(whole)
    return found


def _longest_gap(losses: Sequence[tuple[int, int]], from_ns: int, to_ns: int) -> tuple[int, int]:
    """Return the longest part of a span that meets no loss; an empty one if there is none."""
    best, begin_ns = (from_ns, from_ns), from_ns
    for loss_ns, end_ns in [*sorted(losses), (to_ns, to_ns)]:
        gap_ns = min(loss_ns, to_ns) - begin_ns
        if gap_ns > best[1] - best[0]:
            best = begin_ns, begin_ns + gap_ns
        begin_ns = max(begin_ns, end_ns)
    return best


def _scaled(times: ThreadTimes, share: float) -> ThreadTimes:
    return replace(
        times, cpu_ns=round(times.cpu_ns * share), queued_ns=round(times.queued_ns * share)
    )
