"""The lack of CPUs as the cause of waits: its figures, its lock, and its limits."""

from __future__ import annotations

from msgspec.structs import replace
from unit.analysis.test_contention_patterns import cpu_starved, with_rates
from unit.builders import records

from locktop.collector.analysis import cpu_starvation
from locktop.collector.model import LockRates, Snapshot
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
