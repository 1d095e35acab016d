"""The line of an alert: the event, the thread, the lock and the source location."""

from __future__ import annotations

from collections.abc import Mapping

from locktop.collector.analysis import lock_classes
from locktop.collector.analysis.alerts import Alert, AlertKind
from locktop.collector.model import Lock, Snapshot, Thread
from locktop.collector.model.frames import innermost_own_frame
from locktop.collector.render.words import verdict
from locktop.collector.render.words.lock_kind import name_with_kind
from locktop.collector.render.words.source_location import full_location
from locktop.collector.render.words.units import lasting
from locktop.collector.sanitize import clean

_MAX_LENGTH = 1000


def line(alert: Alert, snapshot: Snapshot) -> str:
    """Return the line of an alert. ``snapshot``: taken after the alert, with all names."""
    if alert.kind is AlertKind.DEADLOCK and verdict.is_deadlocked(snapshot):
        return verdict.line(snapshot)
    threads = {thread.tid: thread for thread in snapshot.threads}
    locks = {lock.id: lock for lock in snapshot.locks}
    process, lasts = snapshot.process, lasting(alert.waited_s, _is_lower_bound(alert, threads))
    text = (
        f"{alert.kind}: {_thread(alert.tid, threads)} of {process.comm} {process.pid} has waited"
        f" {lasts} for {lock_name(alert.lock, snapshot)}"
        f"{_holder(alert, locks, threads)}{_location(alert, threads, snapshot)}{_others(alert)}"
    )
    return clean(text, _MAX_LENGTH)


def lock_name(lock: int, snapshot: Snapshot) -> str:
    """Return the name of a lock with its kind."""
    entry = next((candidate for candidate in snapshot.locks if candidate.id == lock), None)
    if entry is None:
        return f"lock {lock}"
    lock_class = lock_classes.classes_by_lock(lock_classes.find(snapshot.locks)).get(lock)
    name = lock_classes.single_name(entry, lock_class)
    return name_with_kind(entry.kind, name)


def _thread(tid: int, threads: Mapping[int, Thread]) -> str:
    thread = threads.get(tid)
    return f"{thread.name} ({tid})" if thread is not None and thread.name else f"thread {tid}"


def _holder(alert: Alert, locks: Mapping[int, Lock], threads: Mapping[int, Thread]) -> str:
    lock = locks.get(alert.lock)
    if lock is None or not lock.holders:
        return ""
    more = f" and {len(lock.holders) - 1} more" if len(lock.holders) > 1 else ""
    return f", held by {_thread(lock.holders[0], threads)}{more}"


def _is_lower_bound(alert: Alert, threads: Mapping[int, Thread]) -> bool:
    thread = threads.get(alert.tid)
    return (
        thread is not None and thread.waiting_for is not None and thread.waiting_for.is_lower_bound
    )


def _location(alert: Alert, threads: Mapping[int, Thread], snapshot: Snapshot) -> str:
    """Return the source location of the wait, if the thread is still in the same wait."""
    thread = threads.get(alert.tid)
    wait = thread.waiting_for if thread is not None else None
    if wait is None or (alert.tid, wait.seq, wait.lock) not in alert.waits:
        return ", which is over"
    frame = innermost_own_frame(snapshot.stacks.get(wait.stack, ())) or snapshot.sites.get(
        wait.site
    )
    return f", in {full_location(frame)}" if frame is not None else ""


def _others(alert: Alert) -> str:
    others = len(alert.waits) - 1
    if not others:
        return ""
    return f"; so {'has' if others == 1 else 'have'} {others} more"
