"""Patterns exactly at their limits, and facts of a scan that decide about a pattern."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from unit.analysis.test_contention_patterns import (
    HOLDER,
    SCENARIOS,
    changed,
    false_idle,
    herd,
    holder,
    long_hold,
    oversubscribed,
    patterns,
    serialised,
    starved,
    with_lock,
    with_rates,
    with_thread,
    with_threads,
    with_waits,
)
from unit.builders import records

from locktop.collector.analysis import contention_patterns
from locktop.collector.analysis.contention_findings import (
    FalseIdle,
    LongHold,
    Oversubscribed,
    Serialised,
    StarvedWriter,
)
from locktop.collector.model import (
    Blame,
    Deadlock,
    DeadlockEdge,
    Held,
    Kind,
    LockRates,
    LockUse,
    PatternName,
    Snapshot,
    Thread,
    ThreadState,
)

Change = Callable[[Snapshot], Snapshot]


def names(snapshot: Snapshot) -> list[PatternName]:
    return [one.name for one in patterns(snapshot)]


AT_THE_LIMIT: list[tuple[PatternName, str, Change]] = [
    (PatternName.CONVOY, "rate", lambda s: with_rates(s, acquisitions=10, contended=5, hold=1e-4)),
    (PatternName.CONVOY, "wait", lambda s: with_rates(s, wait=0.5, unheld=0.2)),
    (PatternName.CONVOY, "hold", lambda s: with_rates(s, hold=0.1)),
    (PatternName.SERIALISED, "rate", lambda s: with_rates(s, acquisitions=2, contended=1)),
    (PatternName.THUNDERING_HERD, "rate", lambda s: replace(
        with_rates(s, acquisitions=100, signals=25), interval_s=5.0)),
    (PatternName.STARVED_WRITER, "the wait", lambda s: with_waits(s, duration_s=1.0)),
    (PatternName.STARVED_WRITER, "the reader", lambda s: with_thread(
        with_waits(s, duration_s=2.0), HOLDER, holds=(Held(1, 0, 1.9, shared=True),))),
    (PatternName.LONG_HOLD, "on a CPU", lambda s: with_thread(s, HOLDER, cpu_share=0.1)),
    (PatternName.FALSE_IDLE, "the wait", lambda s: with_thread(
        s, 11, waiting_for=records.wait(1, Kind.SEM, 0.1))),
    (PatternName.HIGH_RATE, "rate", lambda s: s),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "change"),
    [(name, change) for name, _, change in AT_THE_LIMIT],
    ids=[f"{name}: {what}" for name, what, _ in AT_THE_LIMIT],
)
def test_a_figure_at_its_limit_shows_the_pattern(name: PatternName, change: Change) -> None:
    assert names(change(SCENARIOS[name]())) == [name]


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_interval_of_100_ms_is_long_enough(name: PatternName) -> None:
    made = SCENARIOS[name]()
    of_counts = {PatternName.THUNDERING_HERD: 5000.0, PatternName.HIGH_RATE: 1e6}
    if name in of_counts:
        made = with_rates(made, acquisitions=of_counts[name])
    assert names(replace(made, interval_s=0.1)) == [name]


def test_a_deadlock_of_other_threads_changes_nothing() -> None:
    edge = DeadlockEdge(90, 9, 91, 0, 0)
    made = replace(serialised(), deadlocks=(Deadlock(True, 1.0, (edge,), stuck=(92,)),))
    assert names(made) == [PatternName.SERIALISED]


def test_a_dead_waiter_does_not_wait() -> None:
    assert names(with_thread(serialised(), 11, alive=False)) == []


def test_waits_for_other_locks_do_not_count() -> None:
    assert names(with_waits(serialised(), lock=0)) == []
    assert names(with_waits(serialised(), lock=7)) == []


# ---- serialised ----


def serialised_with(*more: Thread) -> list[PatternName]:
    made = serialised()
    return names(replace(made, threads=(*made.threads, *more)))


def test_threads_that_are_idle_or_dead_do_not_need_the_lock() -> None:
    idle = records.thread(30, "i", ThreadState.IDLE)
    dead = changed(records.thread(31, "d", ThreadState.RUNNING), alive=False)
    assert serialised_with(idle, dead) == [PatternName.SERIALISED]
    assert serialised_with(changed(idle, state=ThreadState.OTHER)) == []


def test_a_spin_lock_serialises_as_a_mutex_does() -> None:
    assert names(with_lock(serialised(), kind=Kind.SPIN)) == [PatternName.SERIALISED]


def test_the_holder_and_the_waiters_are_involved() -> None:
    (found,) = contention_patterns.find(serialised())
    assert isinstance(found, Serialised)
    assert (found.involved, found.active) == (4, 8)
    idle_holder = with_thread(serialised(), HOLDER, state=ThreadState.IDLE)
    (found,) = contention_patterns.find(idle_holder)
    assert isinstance(found, Serialised)
    assert (found.involved, found.active) == (4, 8)


# ---- thundering herd ----


def test_a_herd_of_two_processes_shows_no_pattern() -> None:
    assert names(with_waits(herd(), pshared=True)) == []


def test_woken_threads_that_compute_found_work() -> None:
    def with_cpu(share: float) -> list[PatternName]:
        return names(with_threads(herd(), lambda one: changed(one, cpu_share=share)))

    assert with_cpu(0.024) == [PatternName.THUNDERING_HERD]
    assert with_cpu(0.025) == []


def test_the_first_scan_of_a_herd_has_the_cpu_time_of_the_whole_time() -> None:
    whole = with_lock(herd(), rates=LockRates(), acquisitions=2000, signals=500)
    whole = replace(whole, interval_s=0.0, duration_s=2.0)
    assert names(whole) == [PatternName.THUNDERING_HERD]
    busy = with_threads(whole, lambda one: changed(one, cpu_s=0.06))
    assert names(busy) == []


# ---- starved writers ----


def test_each_reader_must_have_come_after_the_writer() -> None:
    made = with_waits(starved(), duration_s=5.0)
    early = changed(holder(shared=True, duration_s=4.95), tid=9)
    both = with_lock(replace(made, threads=(early, *made.threads)), holders=(HOLDER, 9))
    assert names(both) == []
    late = with_thread(both, 9, holds=(Held(1, 0, 4.5, shared=True),))
    (found,) = contention_patterns.find(late)
    assert isinstance(found, StarvedWriter)
    assert (found.readers, found.longest_read_s, found.longest_wait_s) == (2, 4.5, 5.0)
    assert found.writers == 1


def test_a_lock_without_readers_starves_nobody() -> None:
    assert names(with_lock(starved(), holders=())) == []
    assert names(with_lock(starved(), kind=Kind.MUTEX)) == []


def test_a_reader_that_locktop_does_not_know_is_no_late_reader() -> None:
    assert names(with_lock(starved(), holders=(HOLDER, 99))) == []


def test_the_first_hold_of_a_lock_by_a_reader_counts() -> None:
    twice = (Held(1, 0, 0.95, shared=True), Held(1, 0, 0.1, shared=True))
    assert names(with_thread(starved(), HOLDER, holds=twice)) == []


# ---- long holds ----


def test_a_long_hold_has_its_figures() -> None:
    (found,) = contention_patterns.find(long_hold())
    assert isinstance(found, LongHold)
    assert (found.held_s, found.is_lower_bound, found.longest_wait_s) == (0.1, False, 0.3)
    unknown = with_thread(with_rates(long_hold(), acquisitions=0), HOLDER, holds=())
    (found,) = contention_patterns.find(unknown)
    assert isinstance(found, LongHold)
    assert (found.held_s, found.is_lower_bound) == (0.5, True)


@pytest.mark.parametrize("holders", [(), (HOLDER, 11), (99,)])
def test_only_one_known_holder_holds_for_long(holders: tuple[int, ...]) -> None:
    assert names(with_lock(long_hold(), holders=holders)) == []


def test_without_the_activity_of_the_holder_there_is_no_finding() -> None:
    assert names(with_lock(long_hold(), holder_activity=None)) == []


# ---- false idle ----


def test_a_false_idle_wait_has_its_figures() -> None:
    (found,) = contention_patterns.find(false_idle())
    assert isinstance(found, FalseIdle)
    assert (found.contended_lock, found.other_locks) == ("g_slow", False)
    assert (found.signallers, found.shortest_contended_s) == (1, 0.1)
    made = false_idle()
    (found,) = contention_patterns.find(replace(made, locks=made.locks[:1]))
    assert isinstance(found, FalseIdle)
    assert found.contended_lock == "lock 2"


def test_signallers_may_wait_for_several_locks() -> None:
    made = with_lock(false_idle(), life_signals=20)
    other = records.thread(
        21, "q", ThreadState.WAITING, uses=(LockUse(1, 0, 9),),
        waiting_for=records.wait(3, Kind.MUTEX, 0.2, 30),
    )  # fmt: skip
    (found,) = contention_patterns.find(replace(made, threads=(*made.threads, other)))
    assert isinstance(found, FalseIdle)
    assert (found.signallers, found.other_locks, found.shortest_contended_s) == (2, True, 0.1)


def test_a_dead_thread_signals_no_more() -> None:
    made = false_idle()
    dead = changed(records.thread(21, "p", ThreadState.OTHER, uses=(LockUse(1, 0, 9),)),
                   alive=False)  # fmt: skip
    assert names(replace(made, threads=(*made.threads, dead))) == [PatternName.FALSE_IDLE]
    unknown = changed(dead, uses=None)
    assert names(replace(made, threads=(*made.threads, unknown))) == [PatternName.FALSE_IDLE]


def test_a_thread_that_only_took_units_is_no_signaller() -> None:
    made = false_idle()
    taker = records.thread(21, "p", ThreadState.RUNNING, uses=(LockUse(1, 9, 0),))
    assert names(replace(made, threads=(*made.threads, taker))) == [PatternName.FALSE_IDLE]


def test_signals_that_were_not_counted_prove_nothing() -> None:
    assert names(with_lock(false_idle(), life_signals=None)) == []
    assert names(with_lock(false_idle(), kind=Kind.BARRIER)) == []


# ---- oversubscribed ----


def test_threads_that_want_a_cpu_have_their_figures() -> None:
    (found,) = contention_patterns.find(oversubscribed())
    assert isinstance(found, Oversubscribed)
    assert (found.runnable, found.cpus, found.waiters) == (5, 2, 1)
    assert found.cpus_used == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("state", "found"),
    [(ThreadState.RUNNABLE, True), (ThreadState.RUNNING, True), (ThreadState.OTHER, False)],
)
def test_runnable_threads_want_a_cpu_too(state: ThreadState, found: bool) -> None:
    assert bool(names(with_thread(oversubscribed(), 24, state=state))) is found


def test_waiting_and_idle_time_both_count_as_waited() -> None:
    made = with_thread(oversubscribed(), 24, wait_share=0.25, idle_share=0.24)
    assert names(made) == [PatternName.OVERSUBSCRIBED]
    assert names(with_thread(made, 24, wait_share=0.25, idle_share=0.25)) == []


# ---- rates ----


def test_the_first_scan_counts_the_time_without_a_holder_alone() -> None:
    unheld = (Blame(0, 0, 1.5), Blame(0, 0x10, 1.0), Blame(HOLDER, 0, 1.0))
    whole = with_lock(
        SCENARIOS[PatternName.CONVOY](), rates=LockRates(), acquisitions=2000, contended=1000,
        wait_s=3.5, hold_s=0.18, blame=unheld,
    )  # fmt: skip
    assert names(replace(whole, interval_s=0.0, duration_s=2.0)) == [PatternName.CONVOY]
    known = with_lock(whole, blame=(Blame(0, 0, 1.3), *unheld[1:]))
    assert names(replace(known, interval_s=0.0, duration_s=2.0)) == []


def test_a_high_rate_needs_the_rate_and_the_count() -> None:
    made = SCENARIOS[PatternName.HIGH_RATE]()
    assert names(with_lock(made, acquisitions=499_999)) == []
    assert names(with_lock(made, acquisitions=None)) == []
