"""Brief threads that another thread starts and joins."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders.simulated import US, hold

from locktop.collector.extensions.whatif.analysis.evidence import (
    BegunThread,
    Evidence,
    StateSample,
    ThreadTimes,
)
from locktop.collector.extensions.whatif.analysis.lanes import form_lanes
from locktop.collector.extensions.whatif.analysis.programs import ProgramBuilder
from locktop.collector.extensions.whatif.analysis.throughput import ROUNDS
from locktop.collector.extensions.whatif.simulator import Simulator
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
    found = form_lanes(rounds())
    assert {one.tid for one in found.records} == {STARTER, 100, 101}
    assert found.times[100].name == "started by main"
    assert not [one for one in found.records if one.kind is Kind.JOIN]
    # Two starts and two ends in each round; the first threads start before the span.
    assert len(found.signals) == 4 * STARTS - 2


def test_a_round_takes_as_long_as_recorded() -> None:
    program = ProgramBuilder(form_lanes(rounds()), ROUNDS).build()
    outcome = Simulator(program).run(100_000_000, 1_000_000_000)
    recorded = sum(program.rounds_per_s.values())
    assert sum(outcome.rounds) == pytest.approx(recorded, rel=0.03)


def test_readings_in_some_lives_say_which_share_of_all_was_queued() -> None:
    # A thread of the second round was started after the last join of the first one, at 750 us.
    begun = {102: BegunThread(time_ns=1500 * US, queued_ns=75 * US)}
    found = form_lanes(replace(rounds(), begun=begun))
    lived_us = (STARTS - 1) * (770 + 1000) + 220 + 450
    for lane in (100, 101):
        assert found.times[lane].queued_ns == pytest.approx(0.1 * lived_us * US / 2, rel=0.001)


def test_a_join_that_does_not_wait_is_for_a_thread_that_ended_long_ago() -> None:
    records = [
        # The thread that is joined first lives on for 200 ms.
        hold(2, 65, 1000, 100),
        hold(3, 65, 1200, 100),
        hold(2, 65, 201_300, 100),
        replace(hold(STARTER, 9, 201_500, 0, 201_000), kind=Kind.JOIN, hold_ns=None),
        replace(hold(STARTER, 9, 201_501, 0, 0), kind=Kind.JOIN, hold_ns=None),
    ]
    whole = replace(rounds(), records=sorted(records, key=lambda one: one.began_ns))
    found = form_lanes(whole)
    assert not [one for one in found.records if one.kind is Kind.JOIN]
    assert {2, 3} <= set(found.times)


def test_a_thread_that_lives_on_at_the_end_is_in_a_lane() -> None:
    whole = rounds()
    last = hold(999, 65, STARTS * ROUND_US - 100, 50)
    found = form_lanes(replace(whole, records=[*whole.records, last]))
    assert {one.tid for one in found.records} == {STARTER, 100, 101}


def test_samples_of_brief_threads_are_those_of_their_lanes() -> None:
    whole = rounds()
    samples = [*whole.samples, StateSample(102, 1400 * US, True)]
    found = form_lanes(replace(whole, samples=samples))
    assert [one for one in found.samples if one.is_ready] == [StateSample(100, 1400 * US, True)]


def test_without_joins_the_threads_stay_as_they_are() -> None:
    whole = rounds()
    alone = replace(whole, records=[one for one in whole.records if one.kind is not Kind.JOIN])
    assert form_lanes(alone) is alone


def test_the_cpu_time_that_no_lasting_thread_used_is_that_of_the_lanes() -> None:
    found = form_lanes(replace(rounds(), cpu_ns=30_000_000))
    assert found.times[100].cpu_ns == found.times[101].cpu_ns == 15_000_000
