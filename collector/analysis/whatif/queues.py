"""Semaphores and conditions as queues: who adds a unit, and who takes one.

A semaphore counts its units itself. The unit of a condition is the object of its waits, such as an
entry of a queue. Threads wait for the condition at some call sites of its mutex. Whoever takes the
mutex at such a site takes a unit. Each signal adds a unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from locktop.collector.analysis.whatif.boundaries import HELD_KINDS, At, Boundary
from locktop.collector.model import Kind

QUEUE_KINDS = frozenset({Kind.SEM, Kind.COND})
#: Signals for each visit, if each signal stands for one unit.
_LEAST_SIGNALS, _MOST_SIGNALS = 0.8, 1.25


class Queues:
    """The semaphores and conditions of one program."""

    def __init__(self, boundaries: Mapping[int, Sequence[Boundary]]) -> None:
        self._boundaries = boundaries
        self._conditions: dict[tuple[int, int], Boundary] = {}  # by mutex and call site
        self._waits = Counter[int]()  # by lock
        self._signals = Counter[int]()
        self._broadcasts = Counter[int]()
        visits = Counter[tuple[int, int]]()
        retaken = set[tuple[int, int]]()  # where threads take the mutex back after a wait
        for of_thread in boundaries.values():
            for number, one in enumerate(of_thread):
                if one.at is At.GOT and one.kind in HELD_KINDS:
                    visits[one.lock, one.site] += 1
                    if number and _is_condition_over(of_thread, number):
                        retaken.add((one.lock, one.site))
                elif one.at is At.GOT and one.kind in QUEUE_KINDS:
                    self._waits[one.lock] += not one.timed_out
                elif one.at is At.SIGNALLED:
                    self._signals[one.lock] += 1
                    self._broadcasts[one.lock] += one.wakes_all
                elif one.at is At.REQUESTED and one.kind is Kind.COND and number:
                    before = of_thread[number - 1]
                    if before.at is At.RELEASED:
                        self._conditions[before.lock, before.site] = one
        for key in retaken:
            self._conditions.pop(key, None)
        taken = Counter[int]()
        for key, condition in self._conditions.items():
            taken[condition.lock] += visits[key]
        self._counted = {
            lock
            for lock, count in taken.items()
            if count
            and not self._broadcasts[lock]
            and _LEAST_SIGNALS <= self._signals[lock] / count <= _MOST_SIGNALS
        }
        self._first_units = {lock: self._needed(lock) for lock in {*self._waits, *self._signals}}

    def is_known(self, lock: int) -> bool:
        """Return whether the records say who ends the waits."""
        return bool(self._signals[lock])

    def is_counted(self, lock: int) -> bool:
        """Return whether a condition counts units: each visit takes one, each signal adds one."""
        return lock in self._counted

    def visited(self, boundary: Boundary) -> Boundary | None:
        """Return the condition whose unit a thread takes with its mutex; None: of none."""
        condition = self._conditions.get((boundary.lock, boundary.site))
        return condition if condition is not None and condition.lock in self._counted else None

    def units_of(self, boundary: Boundary) -> int:
        """Return the units that a signal adds."""
        if boundary.kind is Kind.SEM or self.is_counted(boundary.lock):
            return 1
        if not self._waits[boundary.lock]:
            return 0
        # A signal that nobody waits for is lost: as many units as there were waits.
        return 1

    def first_units(self, lock: int) -> int:
        """Return the units at the begin."""
        return self._first_units.get(lock, 0)

    def _needed(self, lock: int) -> int:
        """Return the least number of units at the begin with which no thread waits too long."""
        units = needed = 0
        for _, change in sorted(self._changes(lock), key=_posts_first):
            units += change
            needed = max(needed, -units)
        return needed

    def _changes(self, lock: int) -> Iterator[tuple[int, int]]:
        for of_thread in self._boundaries.values():
            for one in of_thread:
                if one.at is At.SIGNALLED and one.lock == lock:
                    yield one.time_ns, self.units_of(one)
                elif one.at is not At.GOT:
                    continue
                elif one.lock == lock and not one.timed_out and lock not in self._counted:
                    yield one.time_ns, -1
                else:
                    condition = self.visited(one)
                    if condition is not None and condition.lock == lock:
                        yield one.time_ns, -1


def _posts_first(change: tuple[int, int]) -> tuple[int, int]:
    return change[0], -change[1]


def _is_condition_over(boundaries: Sequence[Boundary], number: int) -> bool:
    """Return whether a thread took a lock right after a wait for a condition."""
    before = boundaries[number - 1]
    if before.at is At.REQUESTED and number > 1:
        before = boundaries[number - 2]
    return before.at is At.GOT and before.kind is Kind.COND
