"""What is worth an alarm in a snapshot, and has not been told yet.

A wait is known again by its thread, its number and its lock. So what goes on is told once, however
often it is looked at, and the next wait of the same thread for the same lock is another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from locktop.collector.model import Snapshot, Wait

#: A thread's id, the number of its wait, the id of the lock.
_Mark = tuple[int, int, int]


class AlertKind(StrEnum):
    """The value is the word in output and environment."""

    DEADLOCK = "deadlock"  # a certain one
    WAIT = "wait"  # in contention, longer than asked


@dataclass(frozen=True, slots=True)
class Alert:
    """A deadlock, or all waits for one lock that are too long and that were not told."""

    kind: AlertKind
    tid: int  # of the thread that waits longest
    lock: int  # id, of what it waits for
    waited_s: float
    marks: frozenset[_Mark]


class Alerts:
    """Keeps in mind what was told. ``wait_s``: how long a wait must be, None for no such alarm."""

    def __init__(self, wait_s: float | None) -> None:
        self.wait_s = wait_s
        self._told: dict[AlertKind, set[_Mark]] = {kind: set() for kind in AlertKind}
        self._pending: dict[AlertKind, set[_Mark]] = {kind: set() for kind in AlertKind}
        #: How many deadlocks and waits were over before they were told.
        self.missed: dict[AlertKind, int] = dict.fromkeys(AlertKind, 0)

    def due(self, snapshot: Snapshot) -> list[Alert]:
        """Return what goes on and was not told: it is due again until told() is called."""
        going_on = {
            _mark(thread.tid, thread.waiting_for)
            for thread in snapshot.threads
            if thread.waiting_for is not None
        }
        for kind in AlertKind:
            self._told[kind] &= going_on
            self.missed[kind] += len(self._pending[kind] - going_on)
            self._pending[kind].clear()
        found = [*self._deadlocks(snapshot), *self._waits(snapshot)]
        for alert in found:
            # Of a deadlock one mark stands for all.
            one = {min(alert.marks)} if alert.kind is AlertKind.DEADLOCK else alert.marks
            self._pending[alert.kind] |= one
        return found

    def told(self, alert: Alert) -> None:
        """``alarm`` is not due any more."""
        self._told[alert.kind] |= alert.marks
        self._pending[alert.kind] -= alert.marks

    def is_idle(self, alert: Alert, snapshot: Snapshot) -> bool:
        """Whether ``snapshot``, which has more names, tells all its waits to be for work."""
        waits = {thread.tid: thread.waiting_for for thread in snapshot.threads}
        now = (waits.get(tid) for tid, _, _ in alert.marks)
        going_on = [
            wait
            for (tid, *_), wait in zip(alert.marks, now, strict=True)
            if wait is not None and _mark(tid, wait) in alert.marks
        ]
        return len(going_on) == len(alert.marks) and all(wait.idle for wait in going_on)

    def is_pending(self, kind: AlertKind) -> bool:
        """Whether any such was due in the last look and was not told."""
        return bool(self._pending[kind])

    def give_up(self) -> None:
        """There is no look after this one: what is pending was missed."""
        for kind, marks in self._pending.items():
            self.missed[kind] += len(marks)
            marks.clear()

    def _deadlocks(self, snapshot: Snapshot) -> Iterator[Alert]:
        waits = {thread.tid: thread.waiting_for for thread in snapshot.threads}
        for deadlock in snapshot.deadlocks:
            ring = [(edge.tid, wait) for edge in deadlock.cycle if (wait := waits.get(edge.tid))]
            marks = frozenset(_mark(tid, wait) for tid, wait in ring)
            # Any thread of it told is enough: of one knot another circle may be seen next.
            if deadlock.certain and marks and not marks & self._told[AlertKind.DEADLOCK]:
                tid, wait = max(ring, key=lambda one: one[1].duration_s)
                yield Alert(AlertKind.DEADLOCK, tid, wait.lock, wait.duration_s, marks)

    def _waits(self, snapshot: Snapshot) -> Iterator[Alert]:
        if self.wait_s is None:
            return
        by_lock: dict[int, list[tuple[int, Wait]]] = {}
        for thread in snapshot.threads:
            wait = thread.waiting_for
            if wait is not None and self._is_long(thread.tid, wait, self.wait_s):
                by_lock.setdefault(wait.lock, []).append((thread.tid, wait))
        for lock, waits in by_lock.items():
            tid, longest = max(waits, key=lambda one: one[1].duration_s)
            marks = frozenset(_mark(*one) for one in waits)
            yield Alert(AlertKind.WAIT, tid, lock, longest.duration_s, marks)

    def _is_long(self, tid: int, wait: Wait, wait_s: float) -> bool:
        return (
            not wait.idle
            and wait.duration_s > wait_s
            and _mark(tid, wait) not in self._told[AlertKind.WAIT]
        )


def _mark(tid: int, wait: Wait) -> _Mark:
    return tid, wait.seq, wait.lock
