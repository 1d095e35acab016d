"""Builds the program to simulate from the evidence of a span."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from locktop.collector.extensions.whatif.analysis.background import (
    busy_share,
    busy_threads,
    other_programs,
    own_queueing,
)
from locktop.collector.extensions.whatif.analysis.boundaries import At, Boundary, thread_boundaries
from locktop.collector.extensions.whatif.analysis.evidence import Evidence, ThreadTimes
from locktop.collector.extensions.whatif.analysis.own_time import (
    CallPair,
    ReadyShares,
    TimeUse,
    is_own,
    pair_of,
    split,
)
from locktop.collector.extensions.whatif.analysis.queues import Queues
from locktop.collector.extensions.whatif.analysis.simulated_program import (
    Do,
    LockModel,
    LockType,
    Operation,
    Program,
    ThreadModel,
)
from locktop.collector.extensions.whatif.analysis.throughput import ROUNDS
from locktop.collector.extensions.whatif.model import ThroughputUnit, UnitKind
from locktop.collector.model import Kind, WaitRecord
from locktop.collector.model.kinds import HELD_KINDS, SIGNALLED_KINDS

#: A hand-over where too few are known, nanoseconds; and how many are few.
_DEFAULT_WAKE_NS, _MIN_GAPS = 30_000, 8
#: The longest hand-over to a thread that still tries, and does not sleep.
_BRIEF_NS = 8000
#: Cases of a distribution.
_WAKES = 64
#: Events are as frequent as another one from this share of its count on.
_AS_FREQUENT = 0.8
_DIGITS = re.compile(r"[-_:#/. ]*\d+$")
#: The event of a boundary, and its call site. The lock stands for a site that is not known.
_Event = tuple[At, int]


def group_of(name: str) -> str:
    """Return the name of a thread without its number, which its whole group shares."""
    return _DIGITS.sub("", name) or name


class ProgramBuilder:
    """Builds one program."""

    def __init__(self, evidence: Evidence, unit: ThroughputUnit = ROUNDS) -> None:
        """Args:
        evidence: of the span; its marks are those that the unit counts.
        unit: what ends a round.
        """
        self._evidence = evidence
        self._unit = unit
        self._times = own_queueing(evidence.times, busy_share(evidence))
        self._boundaries = thread_boundaries(evidence.records, evidence.signals, evidence.marks)
        self._queues = Queues(self._boundaries)
        self._shares = ReadyShares(self._boundaries, evidence.samples)
        self._indexes: dict[tuple[int, int], int] = {}  # of locks by id and waiter
        self._kinds: dict[int, Kind | None] = {}
        self._meeting: dict[int, set[int]] = {}  # threads by barrier
        self._repeated = {
            tid: _repeated_event(of_thread) for tid, of_thread in self._boundaries.items()
        }

    def build(self) -> Program:
        """Return the program."""
        used = self._time_uses()
        threads = []
        rounds = Counter[str]()  # by group
        for tid, boundaries in self._boundaries.items():
            group = self._group(tid)
            operations = self._operations(tid, boundaries, used[tid])
            if operations:
                role = hash(self._repeated[tid])
                threads.append(ThreadModel(tid=tid, group=group, role=role, operations=operations))
                rounds[group] += sum(operation.do == Do.ROUND for operation in operations)
        known_tids = {thread.tid for thread in threads}
        evidence = self._evidence
        threads += busy_threads(self._times, known_tids, evidence.span_ns)
        threads += other_programs(evidence)
        rates = {group: count * 1e9 / evidence.span_ns for group, count in rounds.items()}
        return Program(
            threads=tuple(threads),
            locks=tuple(self._lock(*key) for key in self._indexes),
            cpus=evidence.cpus,
            wakes_ns=_wakes(_hand_overs(evidence.records), self._times.values()),
            span_ns=evidence.span_ns,
            rounds_per_s=rates,
            others_cpus=evidence.others_cpus,
            is_limited=evidence.cpu_limit is not None,
        )

    def _group(self, tid: int) -> str:
        times = self._times.get(tid)
        return group_of(times.name) if times is not None else str(tid)

    def _lock(self, lock: int, waiter: int) -> LockModel:
        kind = self._kinds[lock]
        if kind is Kind.BARRIER:
            return LockModel(lock, LockType.BARRIER, len(self._meeting[lock]))
        if kind in SIGNALLED_KINDS:
            first = 0 if waiter else self._queues.first_units(lock)
            return LockModel(lock, LockType.UNITS, first, waiter)
        return LockModel(lock, LockType.RWLOCK if kind is Kind.RWLOCK else LockType.MUTEX)

    def _index(self, boundary: Boundary, waiter: int = 0) -> int:
        """Return the index of a lock. ``waiter``: the thread that has units of its own."""
        self._kinds[boundary.lock] = boundary.kind
        return self._indexes.setdefault((boundary.lock, waiter), len(self._indexes))

    # ---- time ----

    def _time_uses(self) -> dict[int, list[TimeUse | None]]:
        """Return what each thread used after each of its boundaries; None: it waited."""
        uses: dict[int, list[TimeUse | None]] = {
            tid: [None] * len(boundaries) for tid, boundaries in self._boundaries.items()
        }
        # Threads of one name may do different work.
        groups: dict[tuple[str, _Event | None], list[int]] = {}
        for tid in self._boundaries:
            groups.setdefault((self._group(tid), self._repeated[tid]), []).append(tid)
        for tids in groups.values():
            self._split_group(tids, uses)
        return uses

    def _split_group(self, tids: Sequence[int], uses: dict[int, list[TimeUse | None]]) -> None:
        """Split the time of the threads of a group, whose pairs are the same."""
        positions: dict[CallPair, list[tuple[int, int]]] = {}
        segments: dict[CallPair, list[int]] = {}
        for tid in tids:
            for number, before, after, duration_ns in self._segments(tid):
                pair = pair_of(before, after)
                positions.setdefault(pair, []).append((tid, number))
                segments.setdefault(pair, []).append(duration_ns)
        times = [self._times[tid] for tid in tids if tid in self._times]
        cpu_ns = sum(thread.cpu_ns for thread in times)
        queued_ns = sum(thread.queued_ns for thread in times)
        durations_ns = {pair: sum(parts) for pair, parts in segments.items()}
        shares = self._shares.shares_of(durations_ns, cpu_ns, queued_ns)
        for pair, used in split(segments, shares, cpu_ns).items():
            for (tid, number), part in zip(positions[pair], used, strict=True):
                uses[tid][number] = part

    def _segments(self, tid: int) -> Iterator[tuple[int, Boundary, Boundary, int]]:
        """Yield the parts of a thread's own time: number, boundaries and length, nanoseconds.

        The thread goes round in the span. So the time after the last boundary is one part with the
        time before the first one. No long part is lost at an end.
        """
        boundaries = self._boundaries[tid]
        begin_ns, end_ns = self._edges(tid)
        for number, (before, after) in enumerate(pairwise(boundaries)):
            if is_own(before):
                yield number, before, after, after.time_ns - before.time_ns
        last, first = boundaries[-1], boundaries[0]
        if is_own(last):
            closing_ns = max(0, end_ns - last.time_ns) + max(0, first.time_ns - begin_ns)
            yield len(boundaries) - 1, last, first, closing_ns

    # ---- operations ----

    def _is_round(self, boundary: Boundary, repeated: _Event | None, is_holding: bool) -> bool:
        match self._unit.kind:
            case UnitKind.MARKS:
                return boundary.at is At.MARKED
            case UnitKind.LOCK:
                return boundary.lock == self._unit.lock and boundary.at is _last_of(boundary)
            case UnitKind.ROUNDS:
                return _event(boundary) == repeated and not is_holding

    def _operations(
        self,
        tid: int,
        boundaries: Sequence[Boundary],
        used: Sequence[TimeUse | None],
    ) -> tuple[Operation, ...]:
        operations: list[Operation] = []
        held = Counter[int]()
        holding, repeated = _holding(boundaries), self._repeated[tid]
        last = len(boundaries) - 1
        for number, boundary in enumerate(boundaries):
            operations += self._calls(tid, boundaries, number, held)
            if self._is_round(boundary, repeated, holding[number]):
                operations.append(Operation(Do.ROUND))
            part = used[number]
            if part is not None and number < last:
                operations += _own(part, 1.0)
        closing = used[last]
        if closing is None:
            return tuple(operations)
        # All threads begin at the begin of the span, and go round in it.
        head = self._head_share(tid)
        waited = self._last_wait(tid)
        return (*_own(closing, head), *operations, *_own(closing, 1.0 - head), *waited)

    def _last_wait(self, tid: int) -> list[Operation]:
        """Return the wait that goes on at the end of the span, as a sleep; []: there is none.

        The thread goes round in the span. Without the sleep, it would never wait. Where a wait went
        on at the begin, or where the thread takes a unit, the replay waits already.
        """
        wait = self._evidence.last_waits.get(tid)
        if wait is None:
            return []
        first, from_ns = self._boundaries[tid][0], self._evidence.from_ns
        if self._queues.is_counted(wait.lock):
            is_replayed = self._queues.takes_last_unit(tid, wait.lock)
        else:
            is_replayed = first.at is At.REQUESTED and first.time_ns < from_ns
        if is_replayed:
            return []
        return [Operation(Do.SLEEP, amount=self._evidence.to_ns - max(wait.began_ns, from_ns))]

    def _head_share(self, tid: int) -> float:
        """Return the share of the last part of a thread's own time that lies at the begin."""
        boundaries = self._boundaries[tid]
        begin_ns, end_ns = self._edges(tid)
        head_ns = max(0, boundaries[0].time_ns - begin_ns)
        tail_ns = max(0, end_ns - boundaries[-1].time_ns)
        return head_ns / (head_ns + tail_ns) if head_ns else 0.0

    def _edges(self, tid: int) -> tuple[int, int]:
        """Return when the own time of a thread begins and ends in the span, nanoseconds."""
        whole = self._evidence.from_ns, self._evidence.to_ns
        return self._evidence.edges.get(tid, whole)

    def _calls(
        self, tid: int, boundaries: Sequence[Boundary], number: int, held: Counter[int]
    ) -> list[Operation]:
        """Return the operations of one boundary. ``held`` counts the locks of the thread."""
        boundary = boundaries[number]
        if boundary.at is At.MARKED:
            return []
        if boundary.kind in SIGNALLED_KINDS:
            return self._queue_operations(tid, boundaries, number)
        if boundary.at is At.REQUESTED:
            return []
        if boundary.kind is Kind.BARRIER and boundary.at is At.GOT:
            self._meeting.setdefault(boundary.lock, set()).add(tid)
            return [Operation(Do.MEET, self._index(boundary))]
        if boundary.kind not in HELD_KINDS or boundary.timed_out:
            return self._wait_as_sleep(boundaries, number)
        if boundary.at is At.RELEASED:
            if not held[boundary.lock]:
                return []  # the span begins within the hold
            held[boundary.lock] -= 1
            return [Operation(Do.RELEASE, self._index(boundary))]
        held[boundary.lock] += 1
        do = Do.SHARE if boundary.is_shared else Do.TAKE
        visit = [] if self._queues.is_surplus(tid, number) else self._queue_visit(boundary)
        return [*visit, Operation(do, self._index(boundary))]

    def _queue_operations(
        self, tid: int, boundaries: Sequence[Boundary], number: int
    ) -> list[Operation]:
        boundary = boundaries[number]
        if boundary.at is At.SIGNALLED:
            if self._queues.is_surplus(tid, number):
                return []
            if self._queues.is_shared(boundary):
                return [Operation(Do.POST, self._index(boundary), 1)]
            waiters = self._queues.ended(tid, number)
            return [Operation(Do.POST, self._index(boundary, waiter), 1) for waiter in waiters]
        if boundary.at is not At.GOT:
            return []
        if self._queues.is_counted(boundary.lock) and not boundary.timed_out:
            return []  # the visit takes the unit
        if boundary.timed_out or not self._queues.is_known(tid, number):
            return self._wait_as_sleep(boundaries, number)
        if self._queues.is_surplus(tid, number):
            return []
        waiter = 0 if self._queues.is_shared(boundary) else tid
        return [Operation(Do.WAIT, self._index(boundary, waiter))]

    def _queue_visit(self, boundary: Boundary) -> list[Operation]:
        """Return the operation that takes a unit of a queue before the lock of the queue."""
        queue = self._queues.visited(boundary)
        return [] if queue is None else [Operation(Do.WAIT, self._index(queue))]

    def _wait_as_sleep(self, boundaries: Sequence[Boundary], number: int) -> list[Operation]:
        """Return a wait of which nobody knows who ends it, as a sleep."""
        if not number or boundaries[number - 1].at is not At.REQUESTED:
            return []
        began_ns = max(boundaries[number - 1].time_ns, self._evidence.from_ns)
        waited_ns = boundaries[number].time_ns - began_ns
        return [Operation(Do.SLEEP, amount=waited_ns)] if waited_ns else []


def _own(used: TimeUse, share: float) -> list[Operation]:
    """Return the operations of a share of a thread's own time."""
    operations = []
    if cpu_ns := round(used.cpu_ns * share):
        operations.append(Operation(Do.COMPUTE, amount=cpu_ns))
    if sleep_ns := round(used.sleep_ns * share):
        operations.append(Operation(Do.SLEEP, amount=sleep_ns))
    return operations


def _repeated_event(boundaries: Sequence[Boundary]) -> _Event | None:
    """Return the event that a thread passes most often with nothing held; None: there is none.

    Of several that are as frequent the lowest one, so that threads of one role have the same one.
    Marks do not count: they are no calls.
    """
    pairs = zip(boundaries, _holding(boundaries), strict=True)
    counts = Counter(
        _event(boundary)
        for boundary, is_holding in pairs
        if boundary.at not in (At.REQUESTED, At.MARKED) and not is_holding
    )
    # A span may begin and end within a round.
    least = max(counts.values(), default=0) * _AS_FREQUENT - 1
    return min((event for event, count in counts.items() if count >= least), default=None)


def _holding(boundaries: Sequence[Boundary]) -> list[bool]:
    """Return whether the thread holds something after each of its boundaries.

    A thread that takes units of a semaphore and posts them holds such a unit meanwhile.
    """
    posted = {boundary.lock for boundary in boundaries if boundary.at is At.SIGNALLED}
    held, holding = Counter[int](), []
    for boundary in boundaries:
        is_held_kind = boundary.kind in HELD_KINDS or (
            boundary.kind is Kind.SEM and boundary.lock in posted
        )
        if boundary.at is At.GOT and is_held_kind and not boundary.timed_out:
            held[boundary.lock] += 1
        elif boundary.at in (At.RELEASED, At.SIGNALLED):
            held[boundary.lock] -= bool(held[boundary.lock])
        holding.append(bool(+held))
    return holding


def _event(boundary: Boundary) -> _Event:
    return boundary.at, boundary.site or boundary.lock


def _last_of(boundary: Boundary) -> At:
    """Return the last event of an acquisition of this kind."""
    return At.RELEASED if boundary.kind in HELD_KINDS else At.GOT


def _hand_overs(records: Iterable[WaitRecord]) -> list[int]:
    """Return how long each hand-over of a mutex took: from the release until the waiter had it."""
    by_lock: dict[int, list[WaitRecord]] = {}
    for record in records:
        if record.kind is Kind.MUTEX and record.hold_ns is not None:
            by_lock.setdefault(record.lock, []).append(record)
    gaps_ns = []
    for of_lock in by_lock.values():
        of_lock.sort(key=_got_ns)
        for before, after in pairwise(of_lock):
            if after.wait_ns and after.began_ns < before.end_ns <= after.got_ns:
                gaps_ns.append(after.got_ns - before.end_ns)
    return sorted(gaps_ns)


def _wakes(gaps_ns: Sequence[int], times: Iterable[ThreadTimes]) -> tuple[int, ...]:
    """Return how long a woken thread takes until it is ready, in some cases, nanoseconds.

    Args:
        gaps_ns: as from _hand_overs(), sorted.
        times: of all threads. Where they wait for CPUs, so do the woken ones. The simulation adds
            that wait, so each long gap stands for a shorter one.
    """
    if len(gaps_ns) < _MIN_GAPS:
        return (_DEFAULT_WAKE_NS,)
    all_times = list(times)
    ready_ns = sum(thread.cpu_ns + thread.queued_ns for thread in all_times)
    queued = sum(thread.queued_ns for thread in all_times) / ready_ns if ready_ns else 0.0
    brief = bisect_left(gaps_ns, _BRIEF_NS)  # of threads that did not sleep yet
    cases = []
    for number in range(_WAKES):
        index = len(gaps_ns) * number // _WAKES
        cases.append(
            gaps_ns[index if index < brief else brief + int((index - brief) * (1 - queued))]
        )
    return tuple(cases)


def _got_ns(record: WaitRecord) -> int:
    return record.got_ns
