"""The lack of CPUs as the cause of waits: its figures, its lock, and its limits."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.analysis.test_contention_patterns import cpu_starved, with_rates
from unit.builders import records

from locktop.collector.analysis import cpu_starvation
from locktop.collector.model import Held, LockRates, Snapshot, TimeSplit
from locktop.collector.render.words.patterns import evidence


def test_the_finding_has_the_threads_and_the_cpus() -> None:
    (finding,) = cpu_starvation.find(cpu_starved())
    assert (finding.lock, finding.tids) == (1, tuple(range(11, 17)))
    assert (round(finding.wanted, 3), round(finding.cpus_used, 3)) == (4.8, 0.6)
    assert (finding.cpus, finding.unheld) == (2, 0.5)
    assert evidence(finding) == (
        "5 threads runnable on 2 CPUs, of which they had 0.6; no thread held the lock in 50 % of"
        " the wait: a woken thread was not yet running"
    )


def with_second(snapshot: Snapshot, unheld: float) -> Snapshot:
    second = records.lock(2, "g_other", rates=LockRates(wait=unheld, unheld=unheld))
    return replace(snapshot, locks=(*snapshot.locks, second))


def test_a_lock_is_named_only_if_it_has_half_of_the_wait() -> None:
    (finding,) = cpu_starvation.find(with_second(cpu_starved(), 2.0))
    assert finding.lock == 1
    (finding,) = cpu_starvation.find(with_second(cpu_starved(), 2.1))
    assert finding.lock == 2
    both = with_second(cpu_starved(), 1.5)
    third = records.lock(3, "g_third", rates=LockRates(wait=1.5, unheld=1.5))
    (finding,) = cpu_starvation.find(replace(both, locks=(*both.locks, third)))
    assert finding.lock == 0


def test_the_waits_of_all_locks_count_together() -> None:
    made = with_second(with_rates(cpu_starved(), wait=0.3, unheld=0.3), 0.3)
    assert len(list(cpu_starvation.find(made))) == 1
    held = records.lock(3, "g_held", rates=LockRates(wait=0.7))
    assert list(cpu_starvation.find(replace(made, locks=(*made.locks, held)))) == []


def test_the_first_scan_has_no_interval() -> None:
    assert list(cpu_starvation.find(replace(cpu_starved(), interval_s=0.0))) == []


def held_by_a_ready_thread(duration_s: float = 2.0, runnable: float = 0.8) -> Snapshot:
    """Return a scan in which thread 11 has held the lock throughout, and had no CPU."""
    made = cpu_starved()
    (lock,) = made.locks
    (first,) = (thread for thread in made.threads if thread.tid == 11)
    others = (thread for thread in made.threads if thread.tid != 11)
    time = TimeSplit(cpu=1.0 - runnable, runnable=runnable)
    held = Held(lock.id, 0, duration_s)
    holder = replace(first, waiting_for=None, holds=(held,), time=time, wait_share=0.0)
    rates = LockRates(wait=4.0, unheld=0.0)
    locks = (replace(lock, holders=(11,), waiters=(12,), rates=rates),)
    return replace(made, threads=(holder, *others), locks=locks, interval_s=1.0)


def test_the_time_behind_a_holder_without_a_cpu_counts() -> None:
    (finding,) = cpu_starvation.find(held_by_a_ready_thread())
    assert finding.lock == 1
    assert finding.tids == tuple(range(11, 17))
    assert evidence(finding) == (
        "5 threads runnable on 2 CPUs, of which they had 0.7; the holder waited for a CPU in 80 %"
        " of the wait"
    )


@pytest.mark.parametrize("made", [held_by_a_ready_thread(0.9), held_by_a_ready_thread(2.0, 0.4)])
def test_a_holder_that_ran_or_took_the_lock_lately_does_not_count(made: Snapshot) -> None:
    assert list(cpu_starvation.find(made)) == []
