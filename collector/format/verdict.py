"""The verdict on a process: deadlocked or not, also in one line."""

from __future__ import annotations

from collections.abc import Sequence

from locktop.collector.analysis.deadlock_report import reports
from locktop.collector.format import deadlock as words
from locktop.collector.format.units import counted, lasting
from locktop.collector.model import Deadlock, DeadlockReport, Snapshot, ThreadState
from locktop.collector.sanitize import clean

_LONGEST = 1000


def is_deadlocked(snapshot: Snapshot) -> bool:
    """Return whether a deadlock is certain."""
    return any(deadlock.certain for deadlock in snapshot.deadlocks)


def is_complete(snapshot: Snapshot) -> bool:
    """Return whether all held locks are known: recording began with the program and is on."""
    return snapshot.level != "dormant" and snapshot.complete


def line(snapshot: Snapshot) -> str:
    """Return the verdict in one line."""
    who = f"{snapshot.process.comm} {snapshot.process.pid}"
    return clean(_certain(snapshot, who) or _not_certain(snapshot, who), _LONGEST)


def _certain(snapshot: Snapshot, who: str) -> str:
    deadlocks = [deadlock for deadlock in snapshot.deadlocks if deadlock.certain]
    if not deadlocks:
        return ""
    certain = (report for report in reports(snapshot) if report.certain)
    oldest = max(certain, key=lambda report: report.since_s)
    return f"deadlock: {_stuck(who, deadlocks, snapshot.ended)}, {_of(oldest, len(deadlocks))}"


def _stuck(who: str, deadlocks: Sequence[Deadlock], ended: bool) -> str:
    count, whom = words.who_for_whom(deadlocks)
    verb = "waited" if ended else "waits" if count == 1 else "wait"
    then = " when it ended" if ended else ""
    return f"{counted(count, 'thread')} of {who} {verb} for {whom}{then}"


def _of(oldest: DeadlockReport, count: int) -> str:
    which = f"{count} cycles, the oldest " if count > 1 else ""
    return f"{which}for {lasting(oldest.since_s, oldest.is_lower_bound)}: {words.circle(oldest)}"


def _not_certain(snapshot: Snapshot, who: str) -> str:
    possible = len(snapshot.deadlocks)
    maybe = f", {possible} possible" if possible else ""
    if not is_complete(snapshot):
        why = "; ".join(snapshot.notes) or "threads took locks before the recording began"
        return f"cannot tell whether there is a deadlock{maybe}: {who}: {why}"
    alive = sum(thread.alive for thread in snapshot.threads)
    waiting = sum(
        thread.waiting_for is not None and thread.state is ThreadState.WAITING
        for thread in snapshot.threads
    )
    waits = [thread.waiting_for for thread in snapshot.threads if thread.waiting_for]
    hidden = sum(not wait.idle and not wait.holders for wait in waits)
    unobserved_waits = len(snapshot.unobserved_waiters)
    return (
        f"no deadlock found{maybe}: {who}, {counted(alive, 'thread')},"
        f" {waiting} waiting for a lock"
        + (f" ({hidden} for one whose holder is not known)" if hidden else "")
        + (f", {unobserved_waits} in unobserved waits" if unobserved_waits else "")
        + ("; a sampled process does not show all held locks" * snapshot.is_sampled)
    )
