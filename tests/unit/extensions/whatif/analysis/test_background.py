"""Other programs on the CPUs, and waits for CPUs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders.simulated import ROUND, compute, hold, program, sleep

from locktop.collector.extensions.whatif.analysis.background import (
    busy_share,
    change_cpus,
    is_starved,
    other_programs,
    own_queueing,
)
from locktop.collector.extensions.whatif.analysis.evidence import Evidence, ThreadTimes
from locktop.collector.extensions.whatif.analysis.simulated_program import ThreadModel
from locktop.collector.extensions.whatif.simulator import Simulator

SPAN_NS = 10**9


def times(cpu_s: float, queued_s: float, threads: int = 4) -> dict[int, ThreadTimes]:
    one = ThreadTimes(name="worker", cpu_ns=round(cpu_s * 1e9), queued_ns=round(queued_s * 1e9))
    return dict.fromkeys(range(threads), one)


def evidence(cpu_s: float, others_cpus: float, queued_s: float = 0.0) -> Evidence:
    return Evidence(
        from_ns=0,
        to_ns=SPAN_NS,
        records=[hold(tid, 65, 1.0, 1.0) for tid in range(4)],
        signals=(),
        samples=(),
        times=times(cpu_s, queued_s),
        losses=(),
        cpus=2,
        others_cpus=others_cpus,
    )


def rounds(threads: int, others: list[ThreadModel]) -> int:
    ours = program((threads, (compute(500), ROUND)), cpus=2)
    whole = replace(ours, threads=(*ours.threads, *others))
    return sum(Simulator(whole).run(200_000_000, SPAN_NS).rounds)


@pytest.mark.parametrize("threads", [1, 8, 64])
@pytest.mark.parametrize("others", [0.0, 0.5, 1.5])
def test_other_programs_keep_cpus_for_which_this_one_waits(others: float, threads: int) -> None:
    found = other_programs(evidence(cpu_s=0.1, others_cpus=others, queued_s=0.5))
    possible = min(threads, 2 - others)
    assert rounds(threads, found) == pytest.approx(2000 * possible, rel=0.02)


def test_other_programs_yield_to_one_that_never_waits_for_a_cpu() -> None:
    found = other_programs(evidence(cpu_s=0.01, others_cpus=2.0, queued_s=0.01))
    pause = program((1, (compute(50), sleep(950), ROUND)), cpus=2)
    whole = replace(pause, threads=(*pause.threads, *found))
    assert sum(Simulator(whole).run(200_000_000, SPAN_NS).rounds) == pytest.approx(1000, rel=0.05)


@pytest.mark.parametrize(("cpus", "possible"), [(1, 0.8), (2, 0.8), (3, 1.8)])
def test_other_programs_go_on_with_cpus_that_this_one_leaves(cpus: int, possible: float) -> None:
    ours = replace(program((8, (compute(500), ROUND)), cpus=2), others_cpus=1.2)
    found = other_programs(evidence(cpu_s=0.1, others_cpus=1.2, queued_s=0.5))
    whole = change_cpus(replace(ours, threads=(*ours.threads, *found)), cpus)
    outcome = Simulator(whole).run(200_000_000, SPAN_NS)
    assert sum(outcome.rounds) == pytest.approx(2000 * possible, rel=0.02)


def test_a_limit_of_cpu_time_takes_cpus_away_until_there_are_more() -> None:
    limited = replace(evidence(cpu_s=0.1, others_cpus=0.2, queued_s=0.5), cpu_limit=0.5)
    ours = program((8, (compute(500), ROUND)), cpus=2)
    ours = replace(ours, others_cpus=0.2, is_limited=True)
    whole = replace(ours, threads=(*ours.threads, *other_programs(limited)))
    for changed, possible in (
        (whole, 0.5),
        (change_cpus(whole, 1), 1.0),
        (change_cpus(whole, 2), 1.8),
    ):
        outcome = Simulator(changed).run(200_000_000, SPAN_NS)
        assert sum(outcome.rounds) == pytest.approx(2000 * possible, rel=0.02)
    assert not is_starved(limited.times, busy_share(limited), SPAN_NS)


def test_cpus_are_busy_with_this_program_and_those_before_it() -> None:
    assert busy_share(evidence(cpu_s=0.25, others_cpus=0.5)) == pytest.approx(0.5)
    assert busy_share(evidence(cpu_s=0.25, others_cpus=0.5, queued_s=0.5)) == pytest.approx(0.75)
    assert busy_share(evidence(cpu_s=0.5, others_cpus=0.5, queued_s=0.5)) == 1.0


def test_waits_for_busy_cpus_are_simulated_and_those_for_free_ones_sleep() -> None:
    for busy, kept in ((1.0, 1.0), (0.95, 1.0), (0.7, 0.5), (0.3, 0.0)):
        found = own_queueing(times(0.1, 0.4), busy)
        assert found[0].queued_ns == pytest.approx(0.4e9 * kept), busy


def test_threads_that_wait_while_cpus_are_free_are_starved() -> None:
    assert is_starved(times(0.1, 0.4), 0.2, SPAN_NS)  # a limit of CPU time
    assert not is_starved(times(0.1, 0.4), 1.0, SPAN_NS)  # other programs, which are simulated
    assert not is_starved(times(0.1, 0.001), 0.2, SPAN_NS)
    assert not is_starved(times(0.001, 0.02), 0.2, SPAN_NS)  # threads that mostly sleep
