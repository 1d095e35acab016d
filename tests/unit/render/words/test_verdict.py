"""The verdict in one line, and the waits that make it doubtful."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import full_report, records, scenarios

from locktop.collector.analysis.deadlock_report import reports
from locktop.collector.model import (
    BlockReason,
    Deadlock,
    DeadlockEdge,
    Frame,
    Kind,
    Pattern,
    PatternName,
    Snapshot,
    TakenUnits,
    ThreadElsewhere,
    ThreadState,
    UnitTaker,
    Wait,
)
from locktop.collector.render.words import verdict
from locktop.collector.render.words.deadlock import avoiding, circle, headline, to_do


def test_waits_without_a_signal_are_named_and_not_counted() -> None:
    waits = records.wait(1, Kind.COND, 12.0)
    threads = (records.thread(11, "w", ThreadState.IDLE, waiting_for=waits),)
    calm = records.snapshot(threads, (records.lock(1, "g_done", Kind.COND),))
    unsignalled = Pattern(PatternName.NO_SIGNAL, 1, (11, 12), "", "")
    other = Pattern(PatternName.CONVOY, 2, (13,), "", "")
    snapshot = replace(calm, patterns=(other, unsignalled))
    assert verdict.line(snapshot).startswith("no deadlock found: store 4711, 1 thread, 0 waiting")
    assert verdict.line(snapshot).endswith(", 2 waiting for a signal that has not come")
    assert "signal" not in verdict.line(calm)
    assert not verdict.is_doubtful(snapshot)


@pytest.mark.parametrize(("idle", "count"), [(True, 0), (False, 1)])
def test_a_wait_for_a_condition_that_a_rule_calls_contended_counts(idle: bool, count: int) -> None:
    wait = Wait(
        lock=1, kind=Kind.COND, duration_s=12.0, holders=(), stack=0, site=0, seq=1, idle=idle
    )
    thread = replace(records.thread(7, "writer", ThreadState.WAITING), waiting_for=wait)
    assert len(verdict.unknown_waits(records.snapshot((thread,), ()))) == count


def test_an_owner_in_another_process_is_known_if_it_has_a_name() -> None:
    wait = replace(records.wait(1, Kind.MUTEX, 12.0), holders=(4810,))
    thread = records.thread(11, "w", ThreadState.WAITING, waiting_for=wait)
    snapshot = records.snapshot((thread,), (records.lock(1, "g_lock"),))
    named = replace(snapshot, threads_elsewhere=(ThreadElsewhere(4810, 4810, "convert"),))
    unknown = replace(snapshot, threads_elsewhere=(ThreadElsewhere(4810),))
    assert verdict.line(named).startswith("no deadlock found: ")
    assert "(1 for one held by convert 4810)" in verdict.line(named)
    assert verdict.line(unknown).startswith("cannot tell whether there is a deadlock: ")
    assert not verdict.is_doubtful(named)
    assert verdict.is_doubtful(unknown)


def test_an_owner_in_another_process_that_waits_too_may_wait_for_this_process() -> None:
    wait = replace(records.wait(1, Kind.MUTEX, 12.0), holders=(4810,))
    thread = records.thread(11, "w", ThreadState.WAITING, waiting_for=wait)
    owner = ThreadElsewhere(4810, 4810, "convert", waits=True)
    snapshot = records.snapshot((thread,), (records.lock(1, "g_lock"),))
    waiting = replace(snapshot, threads_elsewhere=(owner,))
    assert verdict.is_doubtful(waiting)
    assert "for a lock whose holder waits in another process: " in verdict.line(waiting)
    assert "(1 for one held by convert 4810)" in verdict.line(waiting)
    brief = replace(thread, waiting_for=replace(wait, duration_s=9.0))
    assert not verdict.is_doubtful(replace(waiting, threads=(brief,)))


PYTHON_FRAME = Frame(0, "log_line", "app.py", 3, "python", 0)


@pytest.mark.parametrize(("is_python", "source"), [(True, "proc"), (False, "proc"), (True, "")])
def test_a_holder_that_seems_to_run_may_wait_for_the_gil(is_python: bool, source: str) -> None:
    wait = Wait(lock=1, kind=Kind.MUTEX, duration_s=0.1, holders=(8,), stack=5, site=0, seq=1)
    waiter = replace(records.thread(7, "renderer", ThreadState.WAITING), waiting_for=wait)
    holder = records.thread(8, "loader", ThreadState.RUNNING)
    frame = PYTHON_FRAME if is_python else replace(PYTHON_FRAME, module="app")
    whole = records.snapshot((waiter, holder), ())
    snapshot = replace(whole, stacks={5: (frame,)}, source=source or whole.source)
    assert verdict.may_wait_for_gil(snapshot) is (is_python and source == "proc")
    often = replace(snapshot, threads=(waiter, replace(holder, idle_share=0.04, wait_share=0.02)))
    assert verdict.may_wait_for_gil(often) is is_python
    alone = replace(snapshot, threads=(holder,))
    assert not verdict.may_wait_for_gil(alone)


def without_units(taken_units: TakenUnits | None) -> Snapshot:
    """Return a certain deadlock over a semaphore. "keeper" has units of it and wants another."""
    threads = tuple(
        records.thread(tid, name, ThreadState.WAITING, waiting_for=records.wait(7, Kind.SEM, 9.0))
        for tid, name in ((1, "keeper"), (2, "other"))
    )
    slots = records.lock(7, "g_slots", Kind.SEM, waiters=(1, 2), taken_units=taken_units)
    edge = DeadlockEdge(tid=1, waits_for=7, held_by=1, stack=0, site=0, reason=BlockReason.GOT)
    found = Deadlock(certain=True, since_s=9.0, cycle=(edge,), stuck=(2,))
    made = records.snapshot(threads, (slots,), deadlocks=(found,))
    return replace(made, sites={0x10: records.frame("borrow", "pool.c", 7)})


def test_threads_that_wait_for_units_wait_for_no_certain_thread() -> None:
    seen = without_units(TakenUnits(all=3, takers=(UnitTaker(1, 3, 0x10),)))
    assert verdict.line(seen) == (
        "deadlock: 2 threads of store 4711 wait for sem g_slots, for 9.00 s:"
        " all 3 units taken in borrow (pool.c:7), not given back: keeper x3"
    )
    (report,) = reports(seen)
    assert headline(report) == (
        "DEADLOCK: 2 threads wait for sem g_slots, whose units are all taken and not given back,"
        f" for 9.00 s already (since {report.since})"
    )
    assert circle(report) == "2 threads -> sem g_slots"
    assert next(to_do(report)) == "Look first at the code that took the units."
    assert [*avoiding(report)] == [
        "Post each unit of sem g_slots on every way out of the code that took it."
    ]


def test_each_of_several_semaphores_without_units_is_named() -> None:
    one = without_units(TakenUnits(all=3, takers=(UnitTaker(1, 3, 0x10),)))
    tokens = records.lock(
        8, "g_tokens", Kind.SEM, waiters=(4,), taken_units=TakenUnits(1, (UnitTaker(4, 1, 0x10),))
    )
    edge = DeadlockEdge(tid=4, waits_for=8, held_by=4, stack=0, site=0, reason=BlockReason.GOT)
    other = Deadlock(certain=True, since_s=4.0, cycle=(edge,))
    caller = records.thread(
        4, "caller", ThreadState.WAITING, waiting_for=records.wait(8, Kind.SEM, 4.0)
    )
    two = replace(
        one,
        threads=(*one.threads, caller),
        locks=(*one.locks, tokens),
        deadlocks=(*one.deadlocks, other),
    )
    assert verdict.line(two) == (
        "deadlock: 3 threads of store 4711 wait for sem g_slots or sem g_tokens, for 9.00 s:"
        " sem g_slots: all 3 units taken in borrow (pool.c:7), not given back: keeper x3;"
        " sem g_tokens: the only unit taken in borrow (pool.c:7), not given back: caller"
    )
    # The near miss: a thread of one of the deadlocks waits for something else.
    mutex = replace(tokens, kind=Kind.MUTEX, taken_units=None)
    mixed = replace(two, locks=(*one.locks, mutex))
    assert "wait for themselves, 2 cycles" in verdict.line(mixed)


def test_a_thread_that_wants_its_own_lock_again_waits_for_itself() -> None:
    seen = without_units(None)
    assert verdict.line(seen).startswith(
        "deadlock: 1 thread of store 4711 waits for itself, for 9.00 s: "
    )
    (report,) = reports(seen)
    assert headline(report).startswith("DEADLOCK: 1 thread waits for itself, for 9.00 s already")


STUCK = scenarios.deadlock()
POSSIBLE = replace(STUCK, deadlocks=(replace(STUCK.deadlocks[0], certain=False),))
RING = "philosopher-0 -> philosopher-1 -> philosopher-2 -> philosopher-0"
CANNOT_TELL = "cannot tell whether there is a deadlock"
CALM = "store 4711, 9 threads, 3 waiting for a lock"


@pytest.mark.parametrize(
    ("snapshot", "line"),
    [
        (scenarios.normal(), f"no deadlock found: {CALM}"),
        (
            records.sampled(scenarios.normal()),
            f"no deadlock found: {CALM}; a sampled process does not show all held locks",
        ),
        (
            replace(scenarios.normal(), complete=False),
            f"{CANNOT_TELL}: store 4711: threads took locks before the recording began",
        ),
        (
            replace(scenarios.normal(), level="dormant", notes=("it is off", "a note")),
            f"{CANNOT_TELL}: store 4711: it is off; a note",
        ),
        (
            replace(POSSIBLE, complete=False, notes=("a note",)),
            f"{CANNOT_TELL}, 1 possible: store 4711: a note",
        ),
        (STUCK, f"deadlock: 3 threads of store 4711 wait for each other, for 41.7 s: {RING}"),
        (
            replace(STUCK, ended=True),
            "deadlock: 3 threads of store 4711 waited for each other when it ended, for 41.7 s:"
            f" {RING}",
        ),
        (
            POSSIBLE,
            "1 possible deadlock, none certain: store 4711, 12 threads, 6 waiting for a lock",
        ),
        (
            full_report.everything(),
            "no deadlock found: store 4711, 25 threads, 5 waiting for a lock (1 for one held by"
            " worker of convert 4802 and a thread of another process), 4 waiting for something"
            " unknown",
        ),
    ],
)
def test_the_verdict_in_one_line(snapshot: Snapshot, line: str) -> None:
    assert verdict.line(snapshot) == line


def unknown_wait(duration_s: float, *holders: int, **more: object) -> Snapshot:
    """A thread waits; its holders are threads of another process, if they are known at all."""
    wait = replace(records.wait(1, Kind.MUTEX, duration_s), holders=holders, **more)
    thread = records.thread(11, "w", ThreadState.WAITING, waiting_for=wait)
    return records.snapshot((thread,), (records.lock(1, "g_lock"),))


TWO = unknown_wait(12.0)
TWO = replace(TWO, threads=(*TWO.threads, replace(TWO.threads[0], tid=12)))
DEAD = replace(TWO, threads=(replace(TWO.threads[0], alive=False),))


@pytest.mark.parametrize(
    ("snapshot", "begin"),
    [
        (unknown_wait(10.0), f"{CANNOT_TELL}: 1 thread has waited 10 s or more for a lock whose"
         " holder is not known: "),
        (TWO, f"{CANNOT_TELL}: 2 threads have waited 10 s or more for a lock whose holder is not"
         " known: "),
        (unknown_wait(9.9), "no deadlock found: "),
        (DEAD, "no deadlock found: "),
    ],
)  # fmt: skip
def test_a_long_wait_without_a_known_holder_leaves_it_open(snapshot: Snapshot, begin: str) -> None:
    assert verdict.line(snapshot).startswith(begin)
    assert verdict.is_doubtful(snapshot) is begin.startswith(CANNOT_TELL)


def test_the_longest_unknown_wait_comes_first() -> None:
    longer = replace(TWO.threads[1], waiting_for=records.wait(1, Kind.MUTEX, 13.0))
    snapshot = replace(TWO, threads=(TWO.threads[0], longer))
    assert [thread.tid for thread, _ in verdict.unknown_waiters(snapshot)] == [12, 11]


@pytest.mark.parametrize(
    ("share", "stack", "is_timed", "kind", "waits"),
    [
        (0.05, 5, False, Kind.MUTEX, True),
        (0.04, 5, False, Kind.MUTEX, False),
        (0.0, 0, True, Kind.COND, True),
        (0.0, 5, True, Kind.COND, False),
        (0.0, 0, False, Kind.COND, False),
        (0.0, 0, True, Kind.MUTEX, False),
    ],
)
def test_a_wait_for_the_gil_has_a_time_limit_or_takes_much_of_the_time(
    share: float, stack: int, is_timed: bool, kind: Kind, waits: bool
) -> None:
    wait = replace(records.wait(1, kind, 0.1, 8), stack=stack, timed=is_timed)
    waiter = records.thread(7, "renderer", ThreadState.WAITING, waiting_for=wait)
    holder = records.thread(8, "loader", ThreadState.RUNNING, wait_share=share)
    snapshot = replace(records.snapshot((waiter, holder), ()), stacks={5: (PYTHON_FRAME,)})
    assert verdict.may_wait_for_gil(snapshot) is waits


@pytest.mark.parametrize(("is_timed", "waits"), [(True, True), (False, False)])
def test_a_holder_may_wait_for_the_gil_itself(is_timed: bool, waits: bool) -> None:
    waiter = records.thread(
        7, "renderer", ThreadState.WAITING, waiting_for=records.wait(1, Kind.MUTEX, 0.1, 8)
    )
    own = replace(records.wait(2, Kind.COND, 0.1), timed=is_timed, stack=5)
    holder = records.thread(8, "loader", ThreadState.IDLE, waiting_for=own, wait_share=0.5)
    snapshot = replace(records.snapshot((waiter, holder), ()), stacks={5: (PYTHON_FRAME,)})
    assert verdict.may_wait_for_gil(snapshot) is waits
    ended = tuple(replace(thread, alive=False) for thread in snapshot.threads)
    assert not verdict.may_wait_for_gil(replace(snapshot, threads=ended))
