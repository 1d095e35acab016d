"""The simulator against throughputs that follow from queueing theory or by hand."""

from __future__ import annotations

import re
from enum import IntEnum

import pytest
from msgspec.structs import replace
from unit.builders.simulated import ROUND, compute, holding, program, sleep

from locktop.collector.extensions.whatif.analysis.predict import bound
from locktop.collector.extensions.whatif.analysis.simulated_program import (
    Do,
    LockModel,
    LockType,
    Operation,
    Program,
)
from locktop.collector.extensions.whatif.simulator import Simulator
from locktop.collector.native import ffi

RW = (LockModel(65, LockType.RWLOCK),)


def rate(simulated: Program) -> float:
    """Rounds a second."""
    outcome = Simulator(simulated).run(200_000_000, 1_000_000_000)
    return sum(outcome.rounds)


def test_one_thread_needs_the_time_of_its_round() -> None:
    alone = program((1, (sleep(600), *holding(0, compute(400)), ROUND)))
    assert rate(alone) == pytest.approx(1000, rel=0.01)


def test_a_lock_serves_one_thread_at_a_time() -> None:
    crowd = program((16, (sleep(100), *holding(0, sleep(100)), ROUND)))
    assert rate(crowd) == pytest.approx(10_000, rel=0.01)


def test_a_hand_over_takes_the_time_of_a_wake_up() -> None:
    crowd = program((16, (sleep(100), *holding(0, sleep(100)), ROUND)), wake_us=25)
    assert rate(crowd) == pytest.approx(8000, rel=0.02)


@pytest.mark.parametrize("cpus", [1, 2, 4])
def test_the_cpus_are_shared(cpus: int) -> None:
    busy = program((8, (compute(500), ROUND)), cpus=cpus)
    assert rate(busy) == pytest.approx(2000 * cpus, rel=0.01)


def test_cpus_are_shared_by_time_and_not_by_rounds() -> None:
    busy = program((1, (compute(500), ROUND)), (1, (compute(5000), ROUND)), cpus=1)
    outcome = Simulator(busy).run(200_000_000, 1_000_000_000)
    assert outcome.rounds == [pytest.approx(1000, rel=0.03), pytest.approx(100, rel=0.03)]


def test_a_cpu_without_work_pulls_a_thread_that_is_ready_elsewhere() -> None:
    # Three threads begin on two CPUs. One of them is alone, and ends its work at once.
    brief = (compute(1), sleep(1_000_000))
    busy = program((1, (compute(500), ROUND)), (1, brief), (1, (compute(500), ROUND)), cpus=2)
    assert rate(busy) == pytest.approx(4000, rel=0.01)


def test_a_try_for_a_lock_stops_no_thread() -> None:
    """Two threads take two locks in opposite orders. One of them only tries."""
    locks = (LockModel(65, LockType.MUTEX), LockModel(66, LockType.MUTEX))
    one = (sleep(50), *holding(0, sleep(20), *holding(1, sleep(20))), ROUND)
    other = (sleep(51), *holding(1, sleep(20), *holding(0, sleep(20))), ROUND)
    both = Simulator(program((1, one), (1, other), locks=locks)).run(0, 1_000_000_000).rounds
    assert min(both) > 5000  # a tenth of a millisecond a round, and some waits


def test_a_mutex_that_its_thread_has_already_stops_nothing() -> None:
    twice = program((2, (*holding(0, *holding(0, sleep(100))), ROUND)))
    assert rate(twice) == pytest.approx(10_000, rel=0.01)


def test_readers_share_and_writers_do_not() -> None:
    readers = program((8, (*holding(0, sleep(1000), do=Do.SHARE), ROUND)), locks=RW)
    assert rate(readers) == pytest.approx(8000, rel=0.01)
    writers = program((8, (*holding(0, sleep(1000)), ROUND)), locks=RW)
    assert rate(writers) == pytest.approx(1000, rel=0.01)


def test_a_writer_gets_its_turn_among_readers() -> None:
    mixed = program(
        (4, (sleep(3000), *holding(0, sleep(500), do=Do.SHARE), ROUND)),
        (1, (sleep(1000), *holding(0, sleep(500)), ROUND)),
        locks=RW,
    )
    outcome = Simulator(mixed).run(200_000_000, 1_000_000_000)
    assert outcome.rounds[4] > 300


def test_a_semaphore_admits_as_many_as_it_has_units() -> None:
    units = (LockModel(65, LockType.UNITS, 3),)
    inside = (Operation(Do.WAIT, 0), sleep(1000), Operation(Do.POST, 0, 1), ROUND)
    assert rate(program((9, inside), locks=units)) == pytest.approx(3000, rel=0.01)


def test_a_queue_is_as_fast_as_its_slower_side() -> None:
    queue = (LockModel(66, LockType.UNITS, 0),)
    makers = (4, (sleep(1000), Operation(Do.POST, 0, 1), ROUND))
    takers = (2, (Operation(Do.WAIT, 0), sleep(1000), ROUND))
    outcome = Simulator(program(makers, takers, locks=queue)).run(10**8, 10**9)
    assert sum(outcome.rounds[4:]) == pytest.approx(2000, rel=0.01)


def test_a_barrier_waits_for_the_slowest() -> None:
    barrier = (LockModel(67, LockType.BARRIER, 3),)
    quick, slow = (
        (sleep(100), Operation(Do.MEET, 0), ROUND),
        (sleep(1000), Operation(Do.MEET, 0), ROUND),
    )
    assert rate(program((2, quick), (1, slow), locks=barrier)) == pytest.approx(3000, rel=0.01)


def test_a_thousand_threads_may_wait_behind_one_that_computes() -> None:
    crowd = program(
        (1, (compute(20_000), ROUND)),
        (1000, (*holding(0, compute(50)), ROUND)),
        cpus=1,
    )
    outcome = Simulator(crowd).run(0, 100_000_000)
    assert sum(outcome.rounds) > 100


def test_a_simulation_of_too_many_events_is_shorter() -> None:
    busy = program((1, (compute(0.01), ROUND)))
    outcome = Simulator(busy).run(0, 3_600_000_000_000)
    assert 0 < outcome.span_ns < 3_600_000_000_000
    assert sum(outcome.rounds) / outcome.span_ns == pytest.approx(0.1, rel=0.01)


def test_more_cpus_than_threads_change_nothing() -> None:
    crowd = program((4, (compute(100), ROUND)), cpus=9999)
    assert rate(crowd) == rate(replace(crowd, cpus=4))


def test_operations_without_time_do_not_hang() -> None:
    assert rate(program((1, holding(0)))) == 0


def test_the_wait_of_a_lock_is_counted() -> None:
    pair = program((2, (sleep(1), *holding(0, sleep(1000)), ROUND)))
    outcome = Simulator(pair).run(100_000_000, 1_000_000_000)
    assert outcome.wait_ns[0] == pytest.approx(10**9, rel=0.01)


@pytest.mark.parametrize(
    ("simulated", "expected"),
    [
        (program((4, (sleep(900), *holding(0, sleep(100)), ROUND))), 4000),
        (program((40, (sleep(900), *holding(0, sleep(100)), ROUND))), 10_000),
        (program((40, (compute(500), *holding(0, sleep(10)), ROUND))), 4000),
        (
            program((40, (sleep(900), *holding(0, sleep(100), do=Do.SHARE), ROUND)), locks=RW),
            40_000,
        ),
    ],
    ids=["threads", "lock", "cpus", "readers"],
)
def test_no_machine_does_more_than_the_bound(simulated: Program, expected: float) -> None:
    assert bound(simulated) == pytest.approx(expected, rel=0.01)
    assert rate(simulated) <= bound(simulated) * 1.01


@pytest.mark.parametrize(
    ("python", "c"), [(Do, "enum lt_operation_type"), (LockType, "enum lt_lock_type")]
)
def test_python_and_c_mean_the_same_by_a_number(python: type[IntEnum], c: str) -> None:
    names = {re.sub("^LT_", "", name): number for name, number in ffi.typeof(c).relements.items()}
    assert names == {one.name: one.value for one in python}


def test_no_thread_does_nothing() -> None:
    outcome = Simulator(program(locks=())).run(0, 1000)
    assert (outcome.rounds, outcome.wait_ns, outcome.stopped) == ([], [], 0)
    assert (outcome.cpu_ns, outcome.span_ns) == (0, 1000)


def test_a_time_beyond_64_bits_is_a_very_long_one() -> None:
    endless = program((1, (Operation(Do.COMPUTE, amount=1 << 70), ROUND)))
    outcome = Simulator(endless).run(0, 1000)
    assert (outcome.rounds, outcome.cpu_ns) == ([0], 0)  # it has not ended


def test_a_damaged_program_is_refused() -> None:
    without_lock = program((1, holding(1, sleep(1))))
    without_operations = program((1, ()))
    for damaged in (without_lock, without_operations):
        with pytest.raises(ValueError, match="without"):
            Simulator(damaged).run(0, 1000)


def test_a_simulation_of_too_many_steps_is_shorter() -> None:
    """Many threads take locks for no time: a call that nobody can interrupt must end soon."""
    busy = program((1000, (*holding(0) * 100, ROUND)))
    outcome = Simulator(busy).run(0, 3_600_000_000_000)
    assert sum(outcome.rounds) < 100_000
