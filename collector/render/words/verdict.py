"""The verdict on a process: deadlocked or not, also in one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from locktop.collector.analysis.deadlock_report import reports
from locktop.collector.analysis.semaphore_ownership import semaphores_without_units
from locktop.collector.model import (
    Deadlock,
    DeadlockReport,
    Hang,
    Kind,
    Lock,
    PatternName,
    Snapshot,
    Thread,
    ThreadState,
    Wait,
)
from locktop.collector.model.frames import PYTHON
from locktop.collector.render.words import amid_work, elsewhere, hang, readers, unit_takers
from locktop.collector.render.words import deadlock as words
from locktop.collector.render.words.lock_kind import name_with_kind
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.units import counted, lasting
from locktop.collector.sanitize import clean

_LONGEST = 1000
#: Seconds. A shorter wait for a lock with an unknown holder says nothing.
MIN_UNKNOWN_S = 10.0
#: Waits for the GIL have at least this share of a thread's time. On a busy host a far longer wait
#: for a CPU follows each of them.
_MIN_SHARE = 0.05
_CANNOT_TELL = "cannot tell whether there is a deadlock"


def is_deadlocked(snapshot: Snapshot) -> bool:
    """Return whether a deadlock is certain."""
    whole = snapshot.hang
    return any(deadlock.certain for deadlock in snapshot.deadlocks) or (
        whole is not None and whole.certain
    )


def is_complete(snapshot: Snapshot) -> bool:
    """Return whether all held locks are known: recording began with the program and is on."""
    return snapshot.level != "dormant" and snapshot.complete


def is_doubtful(snapshot: Snapshot) -> bool:
    """Return whether there may be a deadlock although none is certain.

    A deadlock is possible, held locks are not known, or a long wait has no known holder. Or all
    threads have waited long for each other, unless something outside of the process wakes one.
    """
    return (
        bool(snapshot.deadlocks or unknown_waits(snapshot))
        or long_hang(snapshot) is not None
        or not is_complete(snapshot)
    )


def long_hang(snapshot: Snapshot) -> Hang | None:
    """Return the hang of the process if it is certain, or lasts for MIN_UNKNOWN_S or more."""
    whole = snapshot.hang
    is_long = whole is not None and (whole.certain or whole.since_s >= MIN_UNKNOWN_S)
    return whole if is_long else None


def unknown_waits(snapshot: Snapshot) -> list[Wait]:
    """Return the waits of MIN_UNKNOWN_S or more for locks whose holders are not known."""
    return [wait for _, wait in unknown_waiters(snapshot)]


def unknown_waiters(snapshot: Snapshot) -> list[tuple[Thread, Wait]]:
    """Return the same with their threads, the longest wait first. A thread of a deadlock has a
    report of its own."""
    waiters = [
        waiter
        for waiter in _unknown_holder_waits(snapshot)
        if waiter[1].duration_s >= MIN_UNKNOWN_S
    ]
    return sorted(waiters, key=lambda waiter: -waiter[1].duration_s)


def may_be_long(snapshot: Snapshot) -> bool:
    """Return whether a wait of an unknown holder began before the first scan, less than
    MIN_UNKNOWN_S ago. The wait may have lasted for any time. Only further scans can tell."""
    if is_deadlocked(snapshot):
        return False
    whole = snapshot.hang
    if whole is not None and not whole.certain and whole.is_lower_bound:
        return whole.since_s < MIN_UNKNOWN_S
    return any(
        wait.is_lower_bound and wait.duration_s < MIN_UNKNOWN_S
        for _, wait in _unknown_holder_waits(snapshot)
    )


def may_wait_for_gil(snapshot: Snapshot) -> bool:
    """Return whether a thread of a Python program may wait for the interpreter's lock (GIL).

    Such a wait is made anew every 5 ms. So one scan of a sampled process often has no stack of it.
    A scan may also meet the thread between two waits. Then a lock that others wait for has a
    holder that seems to run. With the library, its share of waits tells it from one that computes.
    """
    is_python = any(
        frame.module == PYTHON for frames in snapshot.stacks.values() for frame in frames
    )
    alive = [thread for thread in snapshot.threads if thread.alive]
    waits = [thread.waiting_for for thread in alive if thread.waiting_for is not None]
    holders = {tid for wait in waits for tid in wait.holders}
    return is_python and (
        any(_may_be_for_gil(wait) and not wait.stack for wait in waits)
        or any(
            _may_be_for_gil(thread.waiting_for)
            if thread.waiting_for is not None
            else snapshot.is_sampled or thread.wait_share + thread.idle_share >= _MIN_SHARE
            for thread in alive
            if thread.tid in holders
        )
    )


def _may_be_for_gil(wait: Wait) -> bool:
    return wait.kind is Kind.COND and wait.timed


def _unknown_holder_waits(snapshot: Snapshot) -> Iterator[tuple[Thread, Wait]]:
    # An owner that waits, too, may wait for this process.
    unknown = {
        thread.tid for thread in snapshot.threads_elsewhere if thread.waits or not thread.comm
    }
    for thread in snapshot.threads:
        wait = thread.waiting_for if thread.alive else None
        # By some rules a wait for a condition or a semaphore is one for a lock.
        # One that has a time limit each time ends, and is begun again.
        is_for_good = wait is not None and not wait.idle and not wait.renewals
        if wait and is_for_good and unknown.issuperset(wait.holders):
            yield thread, wait


def line(snapshot: Snapshot) -> str:
    """Return the verdict in one line."""
    who = f"{snapshot.process.comm} {snapshot.process.pid}"
    return clean(_certain(snapshot, who) or _not_certain(snapshot, who), _LONGEST)


def _certain(snapshot: Snapshot, who: str) -> str:
    deadlocks = [deadlock for deadlock in snapshot.deadlocks if deadlock.certain]
    hangs = snapshot.hang is not None and snapshot.hang.certain
    if hang.is_the_finding(snapshot) or (hangs and not deadlocks):
        return f"deadlock: {hang.sentence(snapshot)}"
    if not deadlocks:
        return ""
    certain = (report for report in reports(snapshot) if report.certain)
    oldest = max(certain, key=lambda report: report.since_s)
    if semaphores := semaphores_without_units(snapshot, deadlocks):
        return f"deadlock: {_wait_for_units(snapshot, who, semaphores, oldest)}"
    return f"deadlock: {_stuck(who, deadlocks, snapshot)}, {_extent(oldest, len(deadlocks))}"


def _stuck(who: str, deadlocks: Sequence[Deadlock], snapshot: Snapshot) -> str:
    count, whom = words.who_for_whom(deadlocks)
    verb = "waited" if snapshot.is_over else "waits" if count == 1 else "wait"
    then = " when it ended" if snapshot.ended else ""
    return f"{counted(count, 'thread')} of {who} {verb} for {whom}{then}"


def _wait_for_units(
    snapshot: Snapshot, who: str, semaphores: Sequence[Lock], oldest: DeadlockReport
) -> str:
    """A thread that took a unit may wait for another one, but any of the units would do."""
    count = sum(len(lock.waiters) for lock in semaphores)
    verb = "waited" if snapshot.is_over else "waits" if count == 1 else "wait"
    since = lasting(oldest.since_s, oldest.is_lower_bound)
    index = SnapshotIndex(snapshot)
    names = [name_with_kind(lock.kind, lock.name) for lock in semaphores]
    taken = [unit_takers.phrase(index, lock.id) for lock in semaphores]
    if len(semaphores) > 1:
        taken = [f"{name}: {phrase}" for name, phrase in zip(names, taken, strict=True)]
    threads = f"{counted(count, 'thread')} of {who}"
    return f"{threads} {verb} for {' or '.join(names)}, for {since}: {'; '.join(taken)}"


def _extent(oldest: DeadlockReport, count: int) -> str:
    which = f"{count} cycles, the oldest " if count > 1 else ""
    return f"{which}for {lasting(oldest.since_s, oldest.is_lower_bound)}: {words.circle(oldest)}"


def _not_certain(snapshot: Snapshot, who: str) -> str:
    possible = len(snapshot.deadlocks)
    if not is_complete(snapshot):
        maybe = f", {possible} possible" if possible else ""
        why = "; ".join(snapshot.notes) or "threads took locks before the recording began"
        return f"{_CANNOT_TELL}{maybe}: {who}: {why}"
    if long_hang(snapshot) is not None and not snapshot.deadlocks:
        return f"{_CANNOT_TELL}: {hang.sentence(snapshot)}"
    return f"{_answer(snapshot)}: {who}, {_threads(snapshot)}"


def _answer(snapshot: Snapshot) -> str:
    if snapshot.deadlocks:
        return f"{counted(len(snapshot.deadlocks), 'possible deadlock')}, none certain"
    if waits := unknown_waits(snapshot):
        verb = "has" if len(waits) == 1 else "have"
        waiting = {
            thread.tid for thread in snapshot.threads_elsewhere if thread.comm and thread.waits
        }
        are_known = all(wait.holders and waiting.issuperset(wait.holders) for wait in waits)
        of_readers = {lock.id for lock in snapshot.locks if readers.phrase(lock)}
        whose = (
            "whose holder waits in another process" if are_known else "whose holder is not known"
        )
        probable = {lock.id for lock in snapshot.locks if lock.holders_probable}
        if probable.issuperset(wait.lock for wait in waits):
            whose = "whose holder is only probable"
        if of_readers.issuperset(wait.lock for wait in waits):
            whose = "that readers hold, and the lock does not tell which"
        return (
            f"{_CANNOT_TELL}: {counted(len(waits), 'thread')} {verb} waited {MIN_UNKNOWN_S:.0f} s"
            f" or more for a lock {whose}"
        )
    return "no deadlock found"


def unknown_waits_alone(snapshot: Snapshot) -> tuple[int, ...]:
    """Return the threads in unobserved waits that do not count as waits for a lock, by tid."""
    counted_tids = {
        thread.tid
        for thread in snapshot.threads
        if thread.waiting_for is not None and thread.state is ThreadState.WAITING
    }
    return tuple(tid for tid in snapshot.unobserved_waiters if tid not in counted_tids)


def _threads(snapshot: Snapshot) -> str:
    alive = sum(thread.alive for thread in snapshot.threads)
    waiting = sum(
        thread.waiting_for is not None and thread.state is ThreadState.WAITING
        for thread in snapshot.threads
    )
    waits = [thread.waiting_for for thread in snapshot.threads if thread.waiting_for]
    unheld = [wait for wait in waits if not wait.idle and not wait.holders]
    with_probable = {lock.id for lock in snapshot.locks if lock.holders_probable}
    probable = sum(wait.lock in with_probable for wait in unheld)
    at_conditions = sum(
        wait.kind is Kind.COND and wait.lock not in with_probable for wait in unheld
    )
    hidden = len(unheld) - probable - at_conditions
    of_others = {thread.tid for thread in snapshot.threads_elsewhere}
    held = sum(not of_others.isdisjoint(wait.holders) for wait in waits)
    unobserved_waits = len(unknown_waits_alone(snapshot))
    patterns = (pattern for pattern in snapshot.patterns if pattern.name is PatternName.NO_SIGNAL)
    unsignalled = sum(len(pattern.tids) for pattern in patterns)
    amid = len(amid_work.waiters(snapshot))
    return (
        f"{counted(alive, 'thread')}, {waiting} waiting for a lock"
        + (f" ({held} for one held by {elsewhere.holder_names(snapshot)})" if held else "")
        + (f" ({probable} for one whose holder is only probable)" if probable else "")
        + (f" ({hidden} for one whose holder is not known)" if hidden else "")
        + (f" ({at_conditions} at a condition, which nobody holds)" if at_conditions else "")
        + (f", {unobserved_waits} waiting for something unknown" if unobserved_waits else "")
        + (f", {amid} waiting amid their work" if amid else "")
        + (f", {unsignalled} waiting for a signal that has not come" if unsignalled else "")
        + ("; a sampled process does not show all held locks" * snapshot.is_sampled)
    )
