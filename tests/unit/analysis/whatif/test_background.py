"""Other programs on the CPUs, and waits for CPUs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders.simulated import ROUND, compute, program

from locktop.collector.analysis.whatif.background import (
    busy_share,
    is_starved,
    other_programs,
    own_queueing,
)
from locktop.collector.analysis.whatif.evidence import Evidence, ThreadTimes
from locktop.collector.analysis.whatif.simulator import Simulator

SPAN_NS = 10**9


def times(cpu_s: float, queued_s: float, threads: int = 4) -> dict[int, ThreadTimes]:
    one = ThreadTimes(name="worker", cpu_ns=round(cpu_s * 1e9), queued_ns=round(queued_s * 1e9))
    return dict.fromkeys(range(threads), one)


def evidence(cpu_s: float, others_cpus: float) -> Evidence:
    return Evidence(
        from_ns=0,
        to_ns=SPAN_NS,
        records=(),
        signals=(),
        samples=(),
        times=times(cpu_s, 0.0),
        losses=(),
        cpus=2,
        others_cpus=others_cpus,
    )


@pytest.mark.parametrize("threads", [1, 8, 64])
@pytest.mark.parametrize("others", [0.0, 0.5, 1.5])
def test_other_programs_keep_their_cpus(others: float, threads: int) -> None:
    ours = program((threads, (compute(500), ROUND)), cpus=2)
    whole = replace(ours, threads=(*ours.threads, *other_programs(others)))
    outcome = Simulator(whole).run(200_000_000, SPAN_NS)
    possible = min(threads, 2 - others)
    assert sum(outcome.rounds) == pytest.approx(2000 * possible, rel=0.02)


def test_cpus_are_busy_with_this_program_and_others() -> None:
    assert busy_share(evidence(cpu_s=0.25, others_cpus=0.5)) == pytest.approx(0.75)
    assert busy_share(evidence(cpu_s=0.5, others_cpus=0.5)) == 1.0


def test_waits_for_busy_cpus_are_simulated_and_those_for_free_ones_sleep() -> None:
    for busy, kept in ((1.0, 1.0), (0.95, 1.0), (0.7, 0.5), (0.3, 0.0)):
        found = own_queueing(times(0.1, 0.4), busy)
        assert found[0].queued_ns == pytest.approx(0.4e9 * kept), busy


def test_threads_that_wait_while_cpus_are_free_are_starved() -> None:
    assert is_starved(times(0.1, 0.4), 0.2, SPAN_NS)  # a limit of CPU time
    assert not is_starved(times(0.1, 0.4), 1.0, SPAN_NS)  # other programs, which are simulated
    assert not is_starved(times(0.1, 0.001), 0.2, SPAN_NS)
    assert not is_starved(times(0.001, 0.02), 0.2, SPAN_NS)  # threads that mostly sleep
