"""Patterns: each scenario shows its pattern, and a scenario just below a threshold shows none."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.analysis import contention_patterns
from locktop.collector.analysis.contention_findings import Finding
from locktop.collector.model import (
    ActivityState,
    Blame,
    Deadlock,
    DeadlockEdge,
    Held,
    HolderEvidence,
    Kind,
    LockRates,
    LockUse,
    Pattern,
    PatternName,
    ProbableHolder,
    Snapshot,
    Thread,
    ThreadActivity,
    ThreadState,
    TimeSplit,
    Wait,
)
from locktop.collector.render.documents.snapshot_codec import document, parse
from locktop.collector.render.text import report
from locktop.collector.render.words.patterns import ADVICE, described
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.lock_details import lock_details

HOLDER = 10
WAITERS = (11, 12, 13, 14)


def patterns(snapshot: Snapshot) -> tuple[Pattern, ...]:
    return described(contention_patterns.find(snapshot))


def changed(one: Any, **fields: Any) -> Any:
    return replace(one, **fields)


def waiter(tid: int, kind: Kind = Kind.MUTEX, duration_s: float = 0.3, **fields: Any) -> Thread:
    wait = changed(records.wait(1, kind, duration_s, HOLDER), **fields)
    state = ThreadState.IDLE if wait.idle else ThreadState.WAITING
    return records.thread(tid, "w", state, waiting_for=wait)


def holder(state: ThreadState = ThreadState.RUNNING, **held: Any) -> Thread:
    return records.thread(HOLDER, "h", state, holds=(changed(Held(1, 0x401100, 0.05), **held),))


def scan(waiters: tuple[Thread, ...], rates: LockRates, *others: Thread, **lock: Any) -> Snapshot:
    """A lock with waiters; a thread holds the lock if its kind has holders."""
    kind = lock.pop("kind", Kind.MUTEX)
    held = (HOLDER,) if any(thread.tid == HOLDER for thread in others) else ()
    one = records.lock(
        1, "g_lock", kind, rates=rates, waiters=tuple(thread.tid for thread in waiters),
        **{"holders": held, "hold_timed": 5, **lock},
    )  # fmt: skip
    return records.snapshot((*others, *waiters), (one,))


def with_lock(snapshot: Snapshot, **fields: Any) -> Snapshot:
    return replace(snapshot, locks=(changed(snapshot.locks[0], **fields),))


def with_rates(snapshot: Snapshot, **fields: Any) -> Snapshot:
    return with_lock(snapshot, rates=changed(snapshot.locks[0].rates, **fields))


def with_threads(snapshot: Snapshot, change: Callable[[Thread], Thread | None]) -> Snapshot:
    made = (change(thread) for thread in snapshot.threads)
    return replace(snapshot, threads=tuple(thread for thread in made if thread is not None))


def with_waits(snapshot: Snapshot, **fields: Any) -> Snapshot:
    def change(thread: Thread) -> Thread:
        wait: Wait | None = thread.waiting_for
        return thread if wait is None else replace(thread, waiting_for=changed(wait, **fields))

    return with_threads(snapshot, change)


def with_thread(snapshot: Snapshot, tid: int, **fields: Any) -> Snapshot:
    return with_threads(snapshot, lambda one: changed(one, **fields) if one.tid == tid else one)


def without(snapshot: Snapshot, *tids: int) -> Snapshot:
    return with_threads(snapshot, lambda one: None if one.tid in tids else one)


# ---- one scenario for each pattern ----


def convoy() -> Snapshot:
    rates = LockRates(acquisitions=1000, contended=500, wait=2.0, hold=0.09, unheld=0.8)
    return scan(tuple(waiter(tid) for tid in WAITERS[:3]), rates, holder())


def serialised() -> Snapshot:
    rates = LockRates(acquisitions=100, contended=50, wait=3.0, hold=0.9)
    others = (records.thread(tid, "x", ThreadState.RUNNING) for tid in range(20, 24))
    return scan(tuple(waiter(tid) for tid in WAITERS[:3]), rates, holder(), *others)


def herd() -> Snapshot:
    rates = LockRates(acquisitions=1000, signals=250)
    return scan(
        tuple(waiter(tid, Kind.COND) for tid in WAITERS), rates, kind=Kind.COND, hold_timed=0
    )


def starved() -> Snapshot:
    reading = holder(shared=True, duration_s=0.5)
    return scan((waiter(11, Kind.RWLOCK, 1.0),), LockRates(), reading, kind=Kind.RWLOCK)


def perhaps_starved() -> Snapshot:
    writer = waiter(11, Kind.RWLOCK, 1.0, holders=(), later_reads=3)
    made = scan((writer,), LockRates(), kind=Kind.RWLOCK, readers=3)
    return replace(made, source="proc", level="sampled")


def long_hold() -> Snapshot:
    sleeps = ThreadActivity(
        HOLDER, ActivityState.BLOCKED, "fsync", "fsync(7 -> /var/lib/x/wal)", 0.09
    )
    holding = holder(ThreadState.IDLE, duration_s=0.1)
    made = scan((waiter(11),), LockRates(acquisitions=5), holding)
    return with_lock(made, holder_activity=sleeps)


def holder_does(snapshot: Snapshot, **fields: Any) -> Snapshot:
    now = snapshot.locks[0].holder_activity
    return with_lock(snapshot, holder_activity=changed(now, **fields))


def false_idle() -> Snapshot:
    poster = records.thread(
        20, "p", ThreadState.WAITING, uses=(LockUse(1, 0, 9),),
        waiting_for=records.wait(2, Kind.MUTEX, 0.1, 30),
    )  # fmt: skip
    made = scan((waiter(11, Kind.SEM),), LockRates(), poster, kind=Kind.SEM, life_signals=10)
    return replace(made, locks=(*made.locks, records.lock(2, "g_slow", waiters=(20,))))


def oversubscribed() -> Snapshot:
    busy = (
        records.thread(tid, "b", ThreadState.RUNNING, cpu_share=0.2, wait_share=0.4)
        for tid in range(20, 25)
    )
    made = scan((waiter(11),), LockRates(), *busy)
    return replace(made, process=replace(made.process, cpus=2))


def cpu_starved() -> Snapshot:
    time = TimeSplit(cpu=0.1, runnable=0.7, contended=0.2)
    threads = [changed(waiter(tid), time=time, wait_share=0.6) for tid in range(11, 17)]
    made = scan(tuple(threads[:2]), LockRates(wait=4.0, unheld=2.0), *threads[2:])
    return replace(made, process=replace(made.process, cpus=2))


def high_rate() -> Snapshot:
    return scan((), LockRates(acquisitions=1e6, contended=999), acquisitions=500_000)


def no_signal() -> Snapshot:
    waits = waiter(11, Kind.COND, 10.0, stack=1)
    made = scan((waits,), LockRates(), kind=Kind.COND, hold_timed=0, signals=1, unheard=1)
    return replace(made, why={11: "condition"})


SCENARIOS = {
    PatternName.CONVOY: convoy,
    PatternName.SERIALISED: serialised,
    PatternName.THUNDERING_HERD: herd,
    PatternName.STARVED_WRITER: starved,
    PatternName.PERHAPS_STARVED: perhaps_starved,
    PatternName.LONG_HOLD: long_hold,
    PatternName.FALSE_IDLE: false_idle,
    PatternName.OVERSUBSCRIBED: oversubscribed,
    PatternName.CPU_STARVED: cpu_starved,
    PatternName.HIGH_RATE: high_rate,
    PatternName.NO_SIGNAL: no_signal,
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_scenario_shows_its_pattern(name: PatternName) -> None:
    made = SCENARIOS[name]()
    (found,) = patterns(made)
    assert found.name is name
    assert found.lock == (0 if name is PatternName.OVERSUBSCRIBED else 1)
    assert any(letter.isdigit() for letter in found.evidence)
    assert found.advice == ADVICE[name]
    assert found.advice.count(". ") == 0
    assert set(found.tids) <= {thread.tid for thread in made.threads}


NEAR_MISSES: list[tuple[PatternName, str, Callable[[Snapshot], Snapshot]]] = [
    (PatternName.CONVOY, "two wait", lambda s: without(s, 13)),
    (PatternName.CONVOY, "seldom contended", lambda s: with_rates(s, contended=499)),
    (PatternName.CONVOY, "held meanwhile", lambda s: with_rates(s, unheld=0.79)),
    (PatternName.CONVOY, "holds take long", lambda s: with_rates(s, hold=0.11)),
    (PatternName.CONVOY, "holds not timed", lambda s: with_lock(s, hold_timed=0)),
    (PatternName.CONVOY, "hardly a wait", lambda s: with_rates(s, wait=0.4, unheld=0.4)),
    (PatternName.CONVOY, "hardly taken", lambda s: with_rates(
        s, acquisitions=9, contended=9, hold=0.0001)),
    (PatternName.CONVOY, "given back by others", lambda s: with_lock(s, foreign_releases=True)),
    (PatternName.CONVOY, "of two processes", lambda s: with_waits(s, pshared=True)),
    (PatternName.CONVOY, "for work", lambda s: with_waits(s, idle=True)),
    (PatternName.CONVOY, "holders not known", lambda s: replace(s, level="counting")),
    (PatternName.CONVOY, "watched later", lambda s: replace(s, complete=False)),
    (PatternName.SERIALISED, "two wait", lambda s: without(s, 13, 20, 21, 22, 23)),
    (PatternName.SERIALISED, "often free", lambda s: with_rates(s, hold=0.89)),
    (PatternName.SERIALISED, "seldom contended", lambda s: with_rates(s, contended=49)),
    (PatternName.SERIALISED, "one long hold", lambda s: with_rates(s, acquisitions=1, contended=1)),
    (PatternName.SERIALISED, "the others do not need it", lambda s: replace(
        s, threads=(*s.threads, records.thread(25, "x", ThreadState.RUNNING)))),
    (PatternName.SERIALISED, "readers overlap", lambda s: with_lock(s, kind=Kind.RWLOCK)),
    (PatternName.SERIALISED, "deadlocked", lambda s: replace(s, deadlocks=(
        Deadlock(True, 1.0, (DeadlockEdge(11, 1, HOLDER, 0, 0),), stuck=(12, 13)),))),
    (PatternName.THUNDERING_HERD, "three wait", lambda s: without(s, 14)),
    (PatternName.THUNDERING_HERD, "fewer for each", lambda s: with_rates(s, signals=251)),
    (PatternName.THUNDERING_HERD, "no signal", lambda s: with_rates(s, signals=0)),
    (PatternName.THUNDERING_HERD, "too few to tell", lambda s: with_rates(
        s, acquisitions=998, signals=1)),
    (PatternName.THUNDERING_HERD, "seldom", lambda s: replace(
        with_rates(s, acquisitions=99, signals=9), interval_s=6.0)),
    (PatternName.THUNDERING_HERD, "time limits", lambda s: with_waits(s, timed=True)),
    (PatternName.THUNDERING_HERD, "they work", lambda s: with_thread(s, 11, cpu_share=0.1)),
    (PatternName.THUNDERING_HERD, "a semaphore", lambda s: with_lock(s, kind=Kind.SEM)),
    (PatternName.STARVED_WRITER, "not for long", lambda s: with_waits(s, duration_s=0.99)),
    (PatternName.STARVED_WRITER, "a reader", lambda s: with_waits(s, shared=True)),
    (PatternName.STARVED_WRITER, "prefers writers", lambda s: with_lock(s, writers_first=True)),
    (PatternName.STARVED_WRITER, "an earlier reader", lambda s: with_thread(
        s, HOLDER, holds=(Held(1, 0, 0.95, shared=True),))),
    (PatternName.STARVED_WRITER, "the begin is not known", lambda s: with_thread(
        s, HOLDER, holds=(Held(1, 0, None, shared=True),))),
    (PatternName.STARVED_WRITER, "a writer holds the lock", lambda s: with_thread(
        s, HOLDER, holds=(Held(1, 0, 0.5),))),
    (PatternName.PERHAPS_STARVED, "not for long", lambda s: with_waits(s, duration_s=0.99)),
    (PatternName.PERHAPS_STARVED, "a reader", lambda s: with_waits(s, shared=True)),
    (PatternName.PERHAPS_STARVED, "free by now", lambda s: with_lock(s, readers=0)),
    (PatternName.PERHAPS_STARVED, "many readers", lambda s: with_lock(s, readers=4)),
    (PatternName.PERHAPS_STARVED, "few later readers", lambda s: with_lock(
        with_waits(s, later_reads=2), readers=1)),
    (PatternName.LONG_HOLD, "not for long", lambda s: with_thread(
        s, HOLDER, holds=(Held(1, 0, 0.099),))),
    (PatternName.LONG_HOLD, "the begin is not known", lambda s: with_thread(
        s, HOLDER, holds=(Held(1, 0, None),))),
    (PatternName.LONG_HOLD, "the holder computes",
     lambda s: holder_does(s, doing=ActivityState.RUNNING)),
    (PatternName.LONG_HOLD, "the holder is stopped",
     lambda s: holder_does(s, doing=ActivityState.STOPPED)),
    (PatternName.LONG_HOLD, "the holder waits for a futex",
     lambda s: holder_does(s, call="futex_wait")),
    (PatternName.LONG_HOLD, "another thread sleeps", lambda s: holder_does(s, tid=HOLDER + 1)),
    (PatternName.LONG_HOLD, "the holder has computed",
     lambda s: with_thread(s, HOLDER, cpu_share=0.11)),
    (
        PatternName.LONG_HOLD,
        "the holder waits for a lock",
        lambda s: holder_does(s, doing=ActivityState.WAITING),
    ),
    (PatternName.LONG_HOLD, "the wait of the holder is unobserved",
     lambda s: replace(s, unobserved_waiters=(HOLDER,))),
    (PatternName.LONG_HOLD, "no thread waits", lambda s: without(s, 11)),
    (PatternName.FALSE_IDLE, "not for long", lambda s: with_thread(
        s, 11, waiting_for=records.wait(1, Kind.SEM, 0.09))),
    (PatternName.FALSE_IDLE, "the wait is short", lambda s: with_thread(
        s, 20, waiting_for=records.wait(2, Kind.MUTEX, 0.09))),
    (PatternName.FALSE_IDLE, "waits for work", lambda s: with_thread(
        s, 20, waiting_for=records.wait(2, Kind.COND, 0.1))),
    (PatternName.FALSE_IDLE, "another thread posts", lambda s: replace(s, threads=(
        *s.threads, records.thread(21, "p", ThreadState.IDLE, uses=(LockUse(1, 0, 1),))))),
    (PatternName.FALSE_IDLE, "other threads posted", lambda s: with_lock(s, life_signals=11)),
    (PatternName.FALSE_IDLE, "no thread is known to post", lambda s: with_thread(s, 20, uses=())),
    (PatternName.FALSE_IDLE, "the counts are incomplete", lambda s: with_thread(s, 11, uses=None)),
    (PatternName.OVERSUBSCRIBED, "two threads per CPU", lambda s: without(s, 24)),
    (PatternName.OVERSUBSCRIBED, "no thread waits", lambda s: without(s, 11)),
    (PatternName.OVERSUBSCRIBED, "a thread has just woken",
     lambda s: with_thread(s, 24, idle_share=0.1)),
    (PatternName.OVERSUBSCRIBED, "a thread was on no CPU",
     lambda s: with_thread(s, 24, cpu_share=0.0)),
    (PatternName.OVERSUBSCRIBED, "CPUs not known", lambda s: replace(
        s, process=replace(s.process, cpus=0))),
    (PatternName.CPU_STARVED, "held meanwhile", lambda s: with_rates(s, unheld=1.99)),
    (PatternName.CPU_STARVED, "hardly a wait", lambda s: with_rates(s, wait=0.49, unheld=0.4)),
    (PatternName.CPU_STARVED, "two threads for each CPU", lambda s: without(s, 16)),
    (PatternName.CPU_STARVED, "threads without waits want CPUs", lambda s: with_threads(
        s, lambda one: changed(one, wait_share=0.0))),
    (PatternName.CPU_STARVED, "CPUs not known", lambda s: replace(
        s, process=replace(s.process, cpus=0))),
    (PatternName.CPU_STARVED, "the run queue is not counted", lambda s: with_threads(
        s, lambda one: changed(one, time=TimeSplit(cpu=0.1, unknown=("runnable",))))),
    (PatternName.CPU_STARVED, "given back by others",
     lambda s: with_lock(s, foreign_releases=True)),
    (PatternName.CPU_STARVED, "of two processes", lambda s: with_waits(s, pshared=True)),
    (PatternName.CPU_STARVED, "a semaphore has no holder", lambda s: with_lock(s, kind=Kind.SEM)),
    (PatternName.CPU_STARVED, "for work", lambda s: with_lock(s, idle=True)),
    (PatternName.CPU_STARVED, "holders not known", lambda s: replace(s, level="counting")),
    (PatternName.CPU_STARVED, "watched later", lambda s: replace(s, complete=False)),
    (PatternName.HIGH_RATE, "the rate is lower", lambda s: with_rates(s, acquisitions=999_999)),
    (PatternName.HIGH_RATE, "contended", lambda s: with_rates(s, contended=1000)),
    (PatternName.HIGH_RATE, "the row has many locks", lambda s: with_lock(s, id=0)),
    (PatternName.HIGH_RATE, "a semaphore", lambda s: with_lock(s, kind=Kind.SEM)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "change"),
    [(name, change) for name, _, change in NEAR_MISSES],
    ids=[f"{name}: {what}" for name, what, _ in NEAR_MISSES],
)
def test_a_near_miss_shows_no_pattern(
    name: PatternName, change: Callable[[Snapshot], Snapshot]
) -> None:
    assert patterns(change(SCENARIOS[name]())) == ()


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_process_that_ended_has_no_pattern(name: PatternName) -> None:
    made = SCENARIOS[name]()
    assert patterns(replace(made, ended=True)) == ()
    assert patterns(replace(made, level="dormant")) == ()
    assert patterns(replace(made, interval_s=0.09)) == ()


def test_a_hold_of_unknown_begin_is_long_if_no_thread_took_the_lock() -> None:
    made = with_rates(long_hold(), acquisitions=0)
    made = with_thread(made, HOLDER, holds=(Held(1, 0, None),))
    (found,) = patterns(made)
    assert found.name is PatternName.LONG_HOLD
    assert "held for at least 500 ms" in found.evidence


def test_the_first_scan_has_rates_over_the_whole_time() -> None:
    whole = with_lock(
        convoy(), rates=LockRates(), acquisitions=2000, contended=1000, wait_s=4.0, hold_s=0.18,
        blame=(Blame(0, 0, 1.6), Blame(HOLDER, 0x401100, 2.4)),
    )  # fmt: skip
    whole = replace(whole, interval_s=0.0, duration_s=2.0)
    assert patterns(whole) == patterns(convoy())
    held = with_lock(whole, blame=(Blame(0, 0, 1.5), Blame(HOLDER, 0x401100, 2.5)))
    assert patterns(held) == ()


def test_a_reader_that_sleeps_since_before_the_wait_keeps_the_writer() -> None:
    reader = ProbableHolder(HOLDER, HolderEvidence.GUARD, 0x401100)
    snapshot = with_lock(perhaps_starved(), holders_probable=(reader,))

    def findings(slept_s: float) -> tuple[Finding, ...]:
        return contention_patterns.find(snapshot, lambda tid, duration_s: slept_s >= duration_s)

    assert findings(0.91) == ()
    assert len(findings(0.5)) == 1


@pytest.mark.parametrize("make", [convoy, serialised, herd, high_rate])
@pytest.mark.parametrize("interval_s", [0.5, 0.0])
def test_rates_that_were_not_measured_show_no_pattern(
    make: Callable[[], Snapshot], interval_s: float
) -> None:
    made = make()
    not_counted = replace(made, locks=records.sampled(made).locks, interval_s=interval_s)
    assert patterns(not_counted) == ()


def all_of_them() -> Snapshot:
    made = scenarios.normal()
    found = tuple(patterns(make())[0] for make in SCENARIOS.values())
    return replace(made, patterns=found)


def test_patterns_are_saved_and_read_back() -> None:
    made = all_of_them()
    whole = document(made)
    assert [one["name"] for one in whole["patterns"]] == list(SCENARIOS)
    read = parse(json.dumps(whole).encode(), "x")
    assert read.patterns == made.patterns


def test_the_text_report_has_patterns_right_after_the_locks() -> None:
    page = report.render(all_of_them())
    order = ["LOCKS, most wait first", "CONTENTION PATTERNS", "SEMAPHORES AND CONDITIONS"]
    assert sorted(order, key=page.index) == order
    assert "  thundering herd at mutex" in page
    assert "  oversubscribed: 5 threads" in page
    assert "CONTENTION PATTERNS" not in report.render(scenarios.normal())


def test_lock_details_show_the_patterns_of_the_lock() -> None:
    made = all_of_them()
    index = SnapshotIndex(made)
    details = {
        lock: "".join(run[0] for line in lock_details(index, index.locks[lock]) for run in line)
        for lock in (1, 2)
    }
    assert "Convoy: 3 threads wait" in details[1]
    assert ADVICE[PatternName.CONVOY] in details[1]
    assert "Oversubscribed" not in details[1]
    assert "Convoy" not in details[2]
