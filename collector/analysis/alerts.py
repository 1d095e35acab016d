"""Alerts: deadlocks and long waits in a snapshot that were not reported before.

The thread, the sequence number and the lock identify a wait. So a wait that goes on is reported
once, whatever the number of scans. The next wait of the thread for the same lock is another wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from locktop.collector.model import Hang, Snapshot, Wait

#: Identifies a wait: a tid, the sequence number of the wait, the id of the lock.
_WaitId = tuple[int, int, int]


class AlertKind(StrEnum):
    """The value is the word in the output and the environment variables."""

    DEADLOCK = "deadlock"  # a certain deadlock
    WAIT = "wait"  # a contended wait that is longer than the limit


class Alert(Struct, frozen=True):
    """A deadlock, or all waits for one lock that are too long and were not reported."""

    kind: AlertKind
    tid: int  # of the thread with the longest wait
    lock: int  # id of the lock that this thread waits for
    waited_s: float
    waits: frozenset[_WaitId]


class Alerts:
    """Finds the alerts of one scan after the other, and remembers the reported ones."""

    def __init__(self, wait_s: float | None) -> None:
        """``wait_s``: the limit of a wait; None for no alerts of waits."""
        self.wait_s = wait_s
        self._reported: dict[AlertKind, set[_WaitId]] = {kind: set() for kind in AlertKind}
        self._pending: dict[AlertKind, set[_WaitId]] = {kind: set() for kind in AlertKind}
        #: How many deadlocks and waits ended before they were reported.
        self.missed: dict[AlertKind, int] = dict.fromkeys(AlertKind, 0)

    def due(self, snapshot: Snapshot) -> list[Alert]:
        """Return the alerts that were not reported. An alert stays due until ``mark_reported``."""
        if any(self._reported.values()) or any(self._pending.values()):
            self._forget_ended(snapshot)
        alerts = [*self._deadlocks(snapshot), *self._waits(snapshot)]
        for alert in alerts:
            # One wait stands for all waits of a deadlock.
            waits = {min(alert.waits)} if alert.kind is AlertKind.DEADLOCK else alert.waits
            self._pending[alert.kind] |= waits
        return alerts

    def _forget_ended(self, snapshot: Snapshot) -> None:
        going_on = {
            _wait_id(thread.tid, thread.waiting_for)
            for thread in snapshot.threads
            if thread.waiting_for is not None
        }
        for kind in AlertKind:
            self._reported[kind] &= going_on
            self.missed[kind] += len(self._pending[kind] - going_on)
            self._pending[kind].clear()

    def mark_reported(self, alert: Alert) -> None:
        """Record that an alert was reported, so that it is not due again."""
        self._reported[alert.kind] |= alert.waits
        self._pending[alert.kind] -= alert.waits

    def is_idle(self, alert: Alert, snapshot: Snapshot) -> bool:
        """Return whether all waits of an alert are idle. ``snapshot``: a snapshot with more names,
        which may classify the waits in another way."""
        by_tid = {thread.tid: thread.waiting_for for thread in snapshot.threads}
        now = (by_tid.get(tid) for tid, _, _ in alert.waits)
        going_on = [
            wait
            for (tid, *_), wait in zip(alert.waits, now, strict=True)
            if wait is not None and _wait_id(tid, wait) in alert.waits
        ]
        return len(going_on) == len(alert.waits) and all(wait.idle for wait in going_on)

    def is_pending(self, kind: AlertKind) -> bool:
        """Return whether an alert of a kind was due in the last scan and was not reported."""
        return bool(self._pending[kind])

    def give_up(self) -> None:
        """Count the pending alerts as missed, because there are no more scans."""
        for kind, pending in self._pending.items():
            self.missed[kind] += len(pending)
            pending.clear()

    def _deadlocks(self, snapshot: Snapshot) -> Iterator[Alert]:
        if snapshot.hang is not None and snapshot.hang.certain and not snapshot.deadlocks:
            yield from self._hang(snapshot.hang, snapshot)
        if not snapshot.deadlocks:
            return
        by_tid = {thread.tid: thread.waiting_for for thread in snapshot.threads}
        for deadlock in snapshot.deadlocks:
            cycle = [(edge.tid, wait) for edge in deadlock.cycle if (wait := by_tid.get(edge.tid))]
            waits = frozenset(_wait_id(tid, wait) for tid, wait in cycle)
            # One reported wait is enough: the next scan may show another cycle of the same strongly
            # connected component.
            if deadlock.certain and waits and not waits & self._reported[AlertKind.DEADLOCK]:
                tid, wait = max(cycle, key=lambda item: item[1].duration_s)
                yield Alert(AlertKind.DEADLOCK, tid, wait.lock, wait.duration_s, waits)

    def _hang(self, hang: Hang, snapshot: Snapshot) -> Iterator[Alert]:
        """Yield the alert of a process whose threads all wait for each other."""
        waits = [
            (thread.tid, thread.waiting_for)
            for thread in snapshot.threads
            if thread.tid in hang.tids and thread.waiting_for is not None
        ]
        ids = frozenset(_wait_id(*item) for item in waits)
        if ids and not ids & self._reported[AlertKind.DEADLOCK]:
            tid, wait = max(waits, key=lambda item: item[1].duration_s)
            yield Alert(AlertKind.DEADLOCK, tid, wait.lock, wait.duration_s, ids)

    def _waits(self, snapshot: Snapshot) -> Iterator[Alert]:
        if self.wait_s is None:
            return
        by_lock: dict[int, list[tuple[int, Wait]]] = {}
        for thread in snapshot.threads:
            wait = thread.waiting_for
            if wait is None or wait.duration_s <= self.wait_s or wait.idle:
                continue
            if _wait_id(thread.tid, wait) not in self._reported[AlertKind.WAIT]:
                by_lock.setdefault(wait.lock, []).append((thread.tid, wait))
        for lock, entries in by_lock.items():
            tid, longest = max(entries, key=lambda entry: entry[1].duration_s)
            waits = frozenset(_wait_id(*entry) for entry in entries)
            yield Alert(AlertKind.WAIT, tid, lock, longest.duration_s, waits)


def _wait_id(tid: int, wait: Wait) -> _WaitId:
    return tid, wait.seq, wait.lock
