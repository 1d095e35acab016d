"""Snapshots with something in every section of the text report."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import inside_samples, records, scenarios

from locktop.collector.model import (
    ActivityState,
    Blame,
    Held,
    Kind,
    Lock,
    Mark,
    Misuse,
    MisuseKind,
    Pattern,
    PatternName,
    Snapshot,
    TakenUnits,
    Thread,
    ThreadActivity,
    ThreadElsewhere,
    ThreadState,
    UnitTaker,
    UnobservedWait,
)

#: Above the tids and ids of scenarios.normal().
NEW = 5000
SHARED_LOCK, SLOTS = 7, 8


def active(tid: int, name: str, doing: ActivityState, **more: object) -> Thread:
    """A thread without a wait."""
    now = replace(ThreadActivity(tid, doing), **more)
    return records.thread(tid, name, ThreadState.OTHER, now=now)


def _threads() -> tuple[Thread, ...]:
    blocked = ActivityState.BLOCKED
    read = {"call": "read", "stack": 7}
    return (
        active(NEW, "poller", blocked, call="epoll_wait", what="epoll_wait(3)", duration_s=60.0),
        active(NEW + 1, "reader-1", blocked, what="read(4)", duration_s=2.0, **read),
        active(NEW + 2, "reader-2", blocked, what="read(5)", duration_s=1.0, **read),
        active(NEW + 3, "writer", blocked, call="write", duration_s=1.0, is_lower_bound=True),
        active(NEW + 4, "cruncher", ActivityState.RUNNING, cpu=0.5),
        *(active(NEW + 5 + n, f"halted-{n}", ActivityState.STOPPED) for n in range(9)),
        records.thread(
            NEW + 20, "taker", ThreadState.WAITING, waiting_for=records.wait(SLOTS, Kind.SEM, 20.0)
        ),
        records.thread(
            NEW + 21, "sharer", ThreadState.WAITING,
            waiting_for=records.wait(SHARED_LOCK, Kind.MUTEX, 3.0, 4810, stack=0),
            holds=(Held(SLOTS, 0, None),),
        ),
    )  # fmt: skip


def _locks(first: Lock, second: Lock) -> tuple[Lock, ...]:
    """The worker that waits for the first lock held the second one, and the journal's thread."""
    chained = (Blame(4714, 0x401100, 2410.0), Blame(4712, 0x401100, 1490.0, through=2))
    behind = (Blame(4716, 0x401300, 300.0), Blame(0, 0, 10.4))
    return (
        replace(
            first,
            blame=chained,
            wait_histogram=records.histogram(*[1000] * 98, 50_000, 2_000_000),
            foreign_releases=True,
        ),
        replace(second, blame=behind),
        records.lock(
            SHARED_LOCK, "g_shared", waiters=(NEW + 21,), holders=(4810, 4811), wait_s=3.0,
            wait_max_s=3.0,
        ),
        records.lock(
            SLOTS, "g_slots", Kind.SEM, waiters=(NEW + 20,), wait_s=20.0, signals=2,
            taken_units=TakenUnits(3, (UnitTaker(4716, 2, 0x401300), UnitTaker(4715, 1))),
        ),
    )  # fmt: skip


def everything() -> Snapshot:
    """Return a snapshot with something in every section that a process without a deadlock has."""
    made = scenarios.orders(scenarios.normal())
    first, second, *rest = made.locks
    made = replace(
        made,
        threads=(*made.threads, *_threads()),
        locks=(*_locks(first, second), *rest),
        locks_left_out=3,
        lost_events=1234,
        threads_elsewhere=(
            ThreadElsewhere(4810, 4802, "convert", "worker"),
            ThreadElsewhere(4811),
        ),
        unobserved_waiters=(NEW + 1, NEW + 2, NEW + 30, NEW + 31),
        unobserved_waits=(UnobservedWait(NEW + 30, 0x7F10, "g_queue", 9.0),),
        patterns=(
            Pattern(PatternName.CONVOY, 1, (4712,), "three threads wait", "Take it less often."),
            Pattern(PatternName.OVERSUBSCRIBED, 0, (), "5 threads, 1 CPU", "Run fewer threads."),
        ),
        misuses=(
            Misuse(MisuseKind.RELEASED_OTHERS, 1, 4712, 4714, 2, 3, 60.0),
            Misuse(MisuseKind.TWO_MUTEXES, 5, 4720, 3, 0, 1, 60.0),
        ),
        marks=(Mark(4712, 0.5, "second"), Mark(4799, 61.0, "first")),
        notes=("a note",),
    )
    return inside_samples.with_samples(made, 1)


def later(before: Snapshot) -> Snapshot:
    """Return the snapshot ten seconds on: each lock that was waited for has more of everything."""
    grown = tuple(
        replace(
            lock,
            acquisitions=(lock.acquisitions or 0) + 1000,
            contended=lock.contended + 100,
            signals=(lock.signals or 0) + 7,
            wait_s=lock.wait_s + 5.0,
            idle_s=lock.idle_s + 5.0 * lock.idle,
            hold_s=(lock.hold_s or 0.0) + 2.0,
            wait_stacks=tuple(
                replace(entry, count=entry.count + 50, wait_s=entry.wait_s + 2.5)
                for entry in lock.wait_stacks
            ),
            blame=tuple(
                replace(entry, wait_s=entry.wait_s + 4.0 / (1 + number))
                for number, entry in enumerate(lock.blame)
            ),
        )
        if lock.wait_s
        else lock
        for lock in before.locks
    )
    return replace(before, duration_s=before.duration_s + 10.0, locks=grown)
