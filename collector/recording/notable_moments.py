"""Finds the moments that are worth a jump, in one scan after the other and in ring records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from locktop.collector.analysis.alerts import Alert, AlertKind, Alerts
from locktop.collector.model import (
    CONTENTION_KINDS,
    Notable,
    NotableKind,
    Snapshot,
    WaitRecord,
)
from locktop.collector.render.words import hang
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.units import counted, duration
from locktop.collector.sanitize import clean
from locktop.collector.shm import slot_batch
from locktop.collector.shm.slot_batch import SlotBatch

#: A wait in contention of more seconds is a notable moment.
LONG_WAIT_S = 1.0
#: Long waits for one lock that overlap are one moment, but no longer than this.
_EPISODE_NS = 60 * 1_000_000_000
#: A wait that begins so soon after one overlaps it: threads renew a wait that has a time limit.
_RENEWED_NS = 100_000_000
#: Ring records and alerts wait so many scans for names: a name may make a wait idle.
_PATIENCE = 10
_MAX_WAITING, _MAX_LOCKS, _MAX_TEXT = 10_000, 10_000, 200
#: Identifies a mark: the thread, and microseconds since the start.
_MarkId = tuple[int, int]


class _Scan:
    """A scan with its index, which few scans need."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    @cached_property
    def index(self) -> SnapshotIndex:
        """The names of locks and threads."""
        return SnapshotIndex(self.snapshot)


class _Episode:
    """Long waits for one lock that overlap."""

    __slots__ = ("began_ns", "until_ns")

    def __init__(self, time_ns: int) -> None:
        self.began_ns = self.until_ns = time_ns


class NotableMoments:
    """Finds each moment once. Give it all scans of one process, in their order."""

    def __init__(self, wait_s: float = LONG_WAIT_S) -> None:
        """``wait_s``: seconds after which a wait in contention is a moment."""
        self._wait_s = wait_s
        self._alerts = Alerts(wait_s)
        self._waiting: list[WaitRecord] = []  # long waits that wait for names
        self._unnamed = 0  # scans in a row with names that were still being read
        self._episodes: dict[int, _Episode] = {}  # by lock
        self._marks: frozenset[_MarkId] = frozenset()
        self._has_ended = False

    def find(
        self, snapshot: Snapshot, time_ns: int, slots: SlotBatch | None = None
    ) -> list[Notable]:
        """Return the new moments, the oldest first.

        A long wait that is over has the time of its end, maybe before the first scan.

        Args:
            snapshot: the scan.
            time_ns: when it was taken, nanoseconds since 1970.
            slots: the ring records since the scan before, if the source has any.
        """
        if slots is not None:
            long = slot_batch.decode(slot_batch.long_waits(slots, self._wait_s))
            self._waiting = [*self._waiting, *long][-_MAX_WAITING:]
        self._unnamed = self._unnamed + 1 if snapshot.names_left else 0
        scan = _Scan(snapshot)
        notables: list[Notable] = []
        if not 0 < self._unnamed <= _PATIENCE or snapshot.ended:
            notables += self._long_waits_of(scan, self._waiting)
            self._waiting = []
        notables += self._alert_notables(scan, time_ns)
        notables += self._new_marks(snapshot, time_ns)
        if snapshot.ended and not self._has_ended:
            self._has_ended = True
            process = snapshot.process
            text = clean(f"{process.comm} {process.pid} has ended")
            notables.append(Notable(time_ns=time_ns, kind=NotableKind.ENDED, text=text))
        return sorted(notables, key=lambda notable: notable.time_ns)

    # ---- waits that go on, and deadlocks ----

    def _alert_notables(self, scan: _Scan, time_ns: int) -> Iterator[Notable]:
        snapshot = scan.snapshot
        in_cycles = {
            edge.tid
            for deadlock in snapshot.deadlocks
            if deadlock.certain
            for edge in deadlock.cycle
        }
        timed = {
            thread.tid
            for thread in snapshot.threads
            if thread.waiting_for is not None and thread.waiting_for.timed
        }
        for alert in self._alerts.due(snapshot):
            if alert.kind is AlertKind.DEADLOCK:
                self._alerts.mark_reported(alert)
                yield _notable(time_ns, NotableKind.DEADLOCK, _deadlock_text(scan, alert), alert)
            elif not 0 < self._unnamed <= _PATIENCE:
                self._alerts.mark_reported(alert)
                began_ns = time_ns - round(alert.waited_s * 1e9)
                is_timed = alert.tid in timed
                if in_cycles.issuperset(tid for tid, _, _ in alert.waits):
                    continue  # the deadlock is a moment already
                if self._is_new_episode(alert.lock, began_ns, time_ns, is_timed):
                    text = _going_on_text(scan, alert)
                    yield _notable(time_ns, NotableKind.WAIT, text, alert)
        self._extend_episodes(snapshot, time_ns)

    def _extend_episodes(self, snapshot: Snapshot, time_ns: int) -> None:
        if not self._episodes:
            return
        for thread in snapshot.threads:
            wait = thread.waiting_for
            if wait is not None and not wait.idle and wait.duration_s > self._wait_s:
                episode = self._episodes.get(wait.lock)
                if episode is not None:
                    episode.until_ns = max(episode.until_ns, time_ns)

    def _is_new_episode(self, lock: int, began_ns: int, until_ns: int, is_timed: bool) -> bool:
        """Return whether a long wait is a moment of its own; the wait counts as known then.

        ``is_timed``: the wait has a time limit, so a thread may have renewed it.
        """
        episode = self._episodes.get(lock)
        if (
            episode is not None
            and began_ns <= episode.until_ns + (_RENEWED_NS if is_timed else 0)
            and until_ns - episode.began_ns <= _EPISODE_NS
        ):
            episode.until_ns = max(episode.until_ns, until_ns)
            return False
        self._episodes.pop(lock, None)
        self._episodes[lock] = _Episode(until_ns)
        if len(self._episodes) > _MAX_LOCKS:
            del self._episodes[next(iter(self._episodes))]
        return True

    # ---- waits that are over ----

    def _long_waits_of(self, scan: _Scan, records: Iterable[WaitRecord]) -> Iterator[Notable]:
        by_lock: dict[int, list[WaitRecord]] = {}
        for record in sorted(records, key=lambda record: record.began_ns):
            if not _is_idle(record, scan):
                by_lock.setdefault(record.lock, []).append(record)
        for lock, waits in by_lock.items():
            for together in _overlapping(waits):
                until_ns = max(record.got_ns for record in together)
                began_ns, is_timed = together[0].began_ns, together[0].timed_out
                if self._is_new_episode(lock, began_ns, until_ns, is_timed):
                    longest = max(together, key=lambda record: record.wait_ns)
                    yield Notable(
                        time_ns=longest.got_ns,
                        kind=NotableKind.WAIT,
                        text=_long_wait_text(scan, longest, len(together)),
                        tid=longest.tid,
                        lock=lock,
                    )

    # ---- marks ----

    def _new_marks(self, snapshot: Snapshot, time_ns: int) -> list[Notable]:
        # The age and the duration are of one clock. So all scans give a mark the same instant, but
        # for the last bits.
        before = self._marks
        marks = [
            (mark.tid, round((snapshot.duration_s - mark.ago_s) * 1e6)) for mark in snapshot.marks
        ]
        self._marks = frozenset(marks)
        return [
            Notable(
                time_ns=time_ns - round(mark.ago_s * 1e9),
                kind=NotableKind.MARK,
                text=mark.text,
                tid=mark.tid,
            )
            for mark, (tid, at_us) in zip(snapshot.marks, marks, strict=True)
            if not any((tid, at_us + step) in before for step in (-1, 0, 1))
        ]


def _is_idle(record: WaitRecord, scan: _Scan) -> bool:
    """Return whether a wait that is over was for work, as far as this scan shows that."""
    lock = scan.index.locks.get(record.lock)
    if lock is None:
        return record.kind not in CONTENTION_KINDS
    stacks = (entry.idle for entry in lock.wait_stacks if entry.stack == record.stack)
    return next(stacks, lock.idle)


def _overlapping(waits: Sequence[WaitRecord]) -> Iterator[list[WaitRecord]]:
    """Yield the waits in runs of waits that overlap. ``waits``: in the order of their begin."""
    run, until_ns = [waits[0]], waits[0].got_ns
    for wait in waits[1:]:
        if wait.began_ns > until_ns + (_RENEWED_NS if run[-1].timed_out else 0):
            yield run
            run = []
        run.append(wait)
        until_ns = max(until_ns, wait.got_ns)
    yield run


def _notable(time_ns: int, kind: NotableKind, text: str, alert: Alert) -> Notable:
    return Notable(
        time_ns=time_ns,
        kind=kind,
        text=clean(text, _MAX_TEXT),
        tid=alert.tid,
        lock=alert.lock,
    )


def _deadlock_text(scan: _Scan, alert: Alert) -> str:
    if not scan.snapshot.deadlocks and scan.snapshot.hang is not None:
        return f"hang: {hang.whom(scan.snapshot)}"
    deadlocks = [
        deadlock
        for deadlock in scan.snapshot.deadlocks
        if alert.lock in {edge.waits_for for edge in deadlock.cycle}
    ]
    if semaphores := scan.index.semaphores_without_units(deadlocks):
        waiters = counted(sum(len(lock.waiters) for lock in semaphores), "thread")
        return f"deadlock: {waiters} waiting for {scan.index.lock_name(alert.lock)}"
    tids = sorted({tid for tid, _, _ in alert.waits})
    if len(tids) == 1:
        return f"deadlock: {scan.index.thread_name(tids[0])} waits for itself"
    names = ", ".join(scan.index.thread_name(tid) for tid in tids)
    return f"deadlock of {len(tids)} threads: {names}"


def _going_on_text(scan: _Scan, alert: Alert) -> str:
    lock = scan.index.locks.get(alert.lock)
    held = f", held by {scan.index.thread_name(lock.holders[0])}" if lock and lock.holders else ""
    return (
        f"{scan.index.thread_name(alert.tid)} waits {duration(alert.waited_s)}"
        f" for {scan.index.lock_name(alert.lock)}{held}{_others(len(alert.waits))}"
    )


def _long_wait_text(scan: _Scan, longest: WaitRecord, count: int) -> str:
    # The record has the holder at the begin. Another one may have had it for most of the wait.
    first = longest.holder
    held = f", which {scan.index.thread_name(first)} had at first" if first else ""
    text = (
        f"{scan.index.thread_name(longest.tid)} waited {duration(longest.wait_ns / 1e9)}"
        f" for {scan.index.lock_name(longest.lock)}{held}{_others(count)}"
    )
    return clean(text, _MAX_TEXT)


def _others(count: int) -> str:
    return f", and {count - 1} more" if count > 1 else ""
