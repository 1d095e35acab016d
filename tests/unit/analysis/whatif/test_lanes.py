"""Brief threads that another thread starts and joins."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders.simulated import US, hold

from locktop.collector.analysis.whatif.evidence import Evidence, StateSample, ThreadTimes
from locktop.collector.analysis.whatif.lanes import with_lanes
from locktop.collector.analysis.whatif.programs import ProgramBuilder
from locktop.collector.analysis.whatif.simulator import Simulator
from locktop.collector.analysis.whatif.throughput import ROUNDS
from locktop.collector.model import Kind, WaitRecord

STARTER, ROUND_US, STARTS = 1, 1000, 100


def rounds() -> Evidence:
    """In each millisecond two threads start, hold a lock for 200 us each, and are joined."""
    records: list[WaitRecord] = []
    for number in range(STARTS):
        at_us = ROUND_US * number
        first, second = 100 + 2 * number, 101 + 2 * number
        records += [hold(first, 65, at_us + 300, 200), hold(second, 65, at_us + 501, 200, 201)]
        for end_us, wait_us in ((520, 500), (750, 229)):
            join = hold(STARTER, 9, at_us + end_us, 0, wait_us)
            records.append(replace(join, kind=Kind.JOIN, hold_ns=None))
    asleep = [StateSample(STARTER, (997 * n + 800) * US, False) for n in range(100)]
    return Evidence(
        from_ns=0,
        to_ns=STARTS * ROUND_US * US,
        records=sorted(records, key=lambda one: one.began_ns),
        signals=(),
        samples=asleep,
        times={STARTER: ThreadTimes(name="main", cpu_ns=0, queued_ns=0)},
        losses=(),
        cpus=2,
    )


def test_the_threads_of_all_rounds_are_two_lanes() -> None:
    found = with_lanes(rounds())
    assert {one.tid for one in found.records} == {STARTER, 100, 101}
    assert found.times[100].name == "started by main"
    assert not [one for one in found.records if one.kind is Kind.JOIN]
    # Two starts and two ends in each round; the first threads start before the span.
    assert len(found.signals) == 4 * STARTS - 2


def test_a_round_takes_as_long_as_recorded() -> None:
    program = ProgramBuilder(with_lanes(rounds()), ROUNDS).build()
    outcome = Simulator(program).run(100_000_000, 1_000_000_000)
    recorded = sum(program.rounds_per_s.values())
    assert sum(outcome.rounds) == pytest.approx(recorded, rel=0.03)


def test_without_joins_the_threads_stay_as_they_are() -> None:
    whole = rounds()
    alone = replace(whole, records=[one for one in whole.records if one.kind is not Kind.JOIN])
    assert with_lanes(alone) is alone


def test_the_cpu_time_that_no_lasting_thread_used_is_that_of_the_lanes() -> None:
    found = with_lanes(replace(rounds(), cpu_ns=30_000_000))
    assert found.times[100].cpu_ns == found.times[101].cpu_ns == 15_000_000
