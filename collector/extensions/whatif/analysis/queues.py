"""Semaphores and conditions as queues: who adds a unit, and who takes one.

A semaphore counts its units itself. The unit of a condition is the object of its waits, such as an
entry of a queue. Threads wait for the condition at some call sites of its mutex. Whoever takes the
mutex at such a site takes a unit. Each signal adds a unit.

Other conditions have no such rule: a signal for which nobody waits is lost, and a broadcast ends
many waits. There each thread has units of its own, and a signal adds one for each wait that it
ended.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from math import inf
from typing import NamedTuple

from locktop.collector.extensions.whatif.analysis.boundaries import At, Boundary
from locktop.collector.model import Kind
from locktop.collector.model.kinds import HELD_KINDS, SIGNALLED_KINDS

#: Signals for each visit, if each signal stands for one unit.
_LEAST_SIGNALS, _MOST_SIGNALS = 0.8, 1.25


class _Position(NamedTuple):
    """A boundary: its thread, and its index there."""

    tid: int
    number: int


class _Wait(NamedTuple):
    began_ns: int
    ended_ns: int
    end: _Position


class _Signal(NamedTuple):
    time_ns: int
    position: _Position
    wakes_all: bool


class _Change(NamedTuple):
    time_ns: float
    units: int
    position: _Position


class Queues:
    """The semaphores and conditions of one program."""

    def __init__(self, boundaries: Mapping[int, Sequence[Boundary]]) -> None:
        self._boundaries = boundaries
        self._conditions: dict[tuple[int, int], Boundary] = {}  # by mutex and call site
        self._waits: dict[int, list[_Wait]] = {}  # by lock
        self._signals: dict[int, list[_Signal]] = {}
        visits = Counter[tuple[int, int]]()
        retaken = set[tuple[int, int]]()  # where threads take the mutex back after a wait
        for tid, of_thread in boundaries.items():
            for number, boundary in enumerate(of_thread):
                if boundary.at is At.GOT and boundary.kind in HELD_KINDS:
                    visits[boundary.lock, boundary.site] += 1
                    if number and _is_condition_over(of_thread, number):
                        retaken.add((boundary.lock, boundary.site))
                elif boundary.kind in SIGNALLED_KINDS:
                    self._add(_Position(tid, number), of_thread)
        for key in retaken:
            self._conditions.pop(key, None)
        taken = Counter[int]()
        for key, condition in self._conditions.items():
            taken[condition.lock] += visits[key]
        self._counted = {lock for lock, count in taken.items() if self._counts_units(lock, count)}
        self._ended: dict[_Position, list[int]] = {}  # threads whose waits a signal ended
        self._signalled_ends = set[_Position]()  # ends of waits that a signal ended
        for lock, waits in self._waits.items():
            self._match(waits, self._signals.get(lock, []))
        self._surplus = set[_Position]()
        self._first_units = {
            lock: self._balance(lock)
            for lock, [first, *_] in self._signals.items()
            if self.is_shared(boundaries[first.position.tid][first.position.number])
        }

    def _add(self, position: _Position, of_thread: Sequence[Boundary]) -> None:
        """Add a boundary of a semaphore or of a condition."""
        boundary = of_thread[position.number]
        before = of_thread[position.number - 1] if position.number else None
        if boundary.at is At.GOT and not boundary.timed_out:
            is_wait = before is not None and before.at is At.REQUESTED
            began_ns = before.time_ns if before is not None and is_wait else boundary.time_ns
            self._waits.setdefault(boundary.lock, []).append(
                _Wait(began_ns, boundary.time_ns, position)
            )
        elif boundary.at is At.SIGNALLED:
            signal = _Signal(boundary.time_ns, position, boundary.wakes_all)
            self._signals.setdefault(boundary.lock, []).append(signal)
        elif boundary.kind is Kind.COND and before is not None and before.at is At.RELEASED:
            self._conditions[before.lock, before.site] = boundary

    def _counts_units(self, lock: int, visits: int) -> bool:
        signals = self._signals.get(lock, ())
        if not visits or any(signal.wakes_all for signal in signals):
            return False
        return _LEAST_SIGNALS <= len(signals) / visits <= _MOST_SIGNALS

    def _match(self, waits: list[_Wait], signals: list[_Signal]) -> None:
        """Find the signal that ended each wait: the first one since the wait began that is left.

        A broadcast ends the waits of all threads, a signal that of one. Threads wait in a line.
        """
        signals.sort(key=lambda signal: signal.time_ns)
        times = [signal.time_ns for signal in signals]
        used = set[int]()
        for wait in sorted(waits):
            number = bisect_right(times, wait.began_ns)
            while number < len(signals) and signals[number].time_ns <= wait.ended_ns:
                if signals[number].wakes_all or number not in used:
                    used.add(number)
                    self._ended.setdefault(signals[number].position, []).append(wait.end.tid)
                    self._signalled_ends.add(wait.end)
                    break
                number += 1

    def is_known(self, tid: int, number: int) -> bool:
        """Return whether the records say who ended a wait, which ended at a boundary."""
        boundary = self._boundaries[tid][number]
        if boundary.kind is Kind.SEM:
            return boundary.lock in self._signals
        return _Position(tid, number) in self._signalled_ends

    def is_counted(self, lock: int) -> bool:
        """Return whether a condition counts units: each visit takes one, each signal adds one."""
        return lock in self._counted

    def is_shared(self, boundary: Boundary) -> bool:
        """Return whether any thread may take the units, and not only the one that waited."""
        return boundary.kind is Kind.SEM or self.is_counted(boundary.lock)

    def ended(self, tid: int, number: int) -> Sequence[int]:
        """Return the threads whose waits a signal ended: the boundary ``number`` of a thread."""
        return self._ended.get(_Position(tid, number), ())

    def visited(self, boundary: Boundary) -> Boundary | None:
        """Return the condition whose unit a thread takes with its mutex; None: of none."""
        condition = self._conditions.get((boundary.lock, boundary.site))
        return condition if condition is not None and condition.lock in self._counted else None

    def first_units(self, lock: int) -> int:
        """Return the units at the begin that any thread may take."""
        return self._first_units.get(lock, 0)

    def is_surplus(self, tid: int, number: int) -> bool:
        """Return whether the unit of a boundary is left out.

        The span is repeated. With one unit more taken than added, all threads would stop.
        """
        return _Position(tid, number) in self._surplus

    def _balance(self, lock: int) -> int:
        """Find the surplus units of a lock.

        Returns:
            the least number of units at the begin with which no thread waits too long.
        """
        changes = sorted(self._changes(lock), key=_added_first)
        surplus = _surplus_of_pool(changes)
        if surplus is None:
            added = [change for change in changes if change.units > 0]
            taken = [change for change in changes if change.units < 0]
            # Those were taken before the span, and these are added after the span.
            surplus = added[: max(0, len(added) - len(taken))] + taken[len(added) :]
        self._surplus |= {change.position for change in surplus}
        units = needed = 0
        for change in changes:
            if change.position not in self._surplus:
                units += change.units
                needed = max(needed, -units)
        return needed

    def _changes(self, lock: int) -> Iterator[_Change]:
        for signal in self._signals[lock]:
            yield _Change(signal.time_ns, 1, signal.position)
        if lock not in self._counted:
            for wait in self._waits.get(lock, ()):
                yield _Change(wait.ended_ns, -1, wait.end)
            return
        for tid, of_thread in self._boundaries.items():
            visits = list(self._visits(tid, lock))
            # A wait that went on at the begin is over, and the thread waits again at the end.
            first_ns = _first_wait_ns(of_thread, lock, visits[0]) if visits else inf
            for number in visits:
                taken_ns = _taken_ns(of_thread, number, lock)
                is_open = number == visits[-1] and taken_ns == inf
                yield _Change(first_ns if is_open else taken_ns, -1, _Position(tid, number))

    def _visits(self, tid: int, lock: int) -> Iterator[int]:
        """Yield the boundaries at which a thread takes the mutex for a unit of a condition."""
        for number, boundary in enumerate(self._boundaries[tid]):
            condition = self.visited(boundary) if boundary.at is At.GOT else None
            if condition is not None and condition.lock == lock:
                yield number

    def takes_last_unit(self, tid: int, lock: int) -> bool:
        """Return whether the last visit of a thread takes a unit of a condition in the replay."""
        last = max(self._visits(tid, lock), default=None)
        return last is not None and not self.is_surplus(tid, last)


def _surplus_of_pool(changes: Sequence[_Change]) -> list[_Change] | None:
    """Return the units that threads add first, or take last; None: some add others' units.

    Where each thread adds what it took, such as a connection, its units belong together.
    """
    by_thread: dict[int, list[_Change]] = {}
    for change in changes:
        by_thread.setdefault(change.position.tid, []).append(change)
    surplus = []
    for of_thread in by_thread.values():
        of_thread.sort(key=_number)
        if any(change.units == other.units for change, other in pairwise(of_thread)):
            return None
        surplus += [change for change in of_thread[:1] if change.units > 0]
        surplus += [change for change in of_thread[-1:] if change.units < 0]
    return surplus


def _number(change: _Change) -> int:
    return change.position.number


def _added_first(change: _Change) -> tuple[float, int]:
    return change.time_ns, -change.units


def _taken_ns(boundaries: Sequence[Boundary], number: int, condition: int) -> float:
    """Return when a thread takes the unit for which it takes the mutex at a boundary.

    Between the mutex and the unit the thread may wait for the condition, again and again. Infinity:
    the span ends before the thread does anything else, so the thread may still wait.
    """
    mutex, taken_ns = boundaries[number].lock, boundaries[number].time_ns
    has_waited = False
    for boundary in islice(boundaries, number + 1, None):
        if boundary.at is At.MARKED:
            continue
        if boundary.at is At.GOT and boundary.lock == condition:
            has_waited = True
        elif boundary.lock not in (mutex, condition) or (boundary.at is At.GOT and not has_waited):
            return taken_ns
        elif boundary.at is At.GOT:
            has_waited, taken_ns = False, boundary.time_ns
    return inf


def _first_wait_ns(boundaries: Sequence[Boundary], condition: int, visit: int) -> float:
    """Return when a wait for a condition ended that began before the span.

    Args:
        boundaries: of the thread.
        condition: the id.
        visit: the number of the first visit in the span.

    Returns:
        nanoseconds; infinity if there was no such wait.
    """
    for boundary in boundaries[:visit]:
        if boundary.at is At.GOT and boundary.lock == condition and not boundary.timed_out:
            return boundary.time_ns
    return inf


def _is_condition_over(boundaries: Sequence[Boundary], number: int) -> bool:
    """Return whether a thread took a lock right after a wait for a condition."""
    before = boundaries[number - 1]
    if before.at is At.REQUESTED and number > 1:
        before = boundaries[number - 2]
    return before.at is At.GOT and before.kind is Kind.COND
