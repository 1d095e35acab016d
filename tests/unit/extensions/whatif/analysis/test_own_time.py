"""The split of threads' own time, against times that are known."""

from __future__ import annotations

from random import Random

import pytest

from locktop.collector.extensions.whatif.analysis.boundaries import At, Boundary
from locktop.collector.extensions.whatif.analysis.evidence import StateSample
from locktop.collector.extensions.whatif.analysis.own_time import (
    CallPair,
    ReadyShares,
    TimeUse,
    split,
)
from locktop.collector.model import Kind

HOLD = CallPair(At.GOT, 1, At.RELEASED, 1)
THINK = CallPair(At.RELEASED, 1, At.GOT, 1)
PAIRS = (HOLD, THINK)


def preempted(
    rng: Random, true_ns: dict[CallPair, list[int]], slice_ns: float, queued_ns: float
) -> dict[CallPair, list[int]]:
    """The durations if a thread loses its CPU about once in ``slice_ns`` that it computes."""
    return {
        pair: [
            one
            + round(sum(rng.expovariate(1 / queued_ns) for _ in range(losses(rng, one, slice_ns))))
            for one in parts
        ]
        for pair, parts in true_ns.items()
    }


def boundary(time_ns: int, at: At) -> Boundary:
    return Boundary(time_ns, at, 65, Kind.MUTEX, 1, False, False, False)


def losses(rng: Random, computed_ns: int, slice_ns: float) -> int:
    count, at = 0, rng.expovariate(1 / slice_ns)
    while at < computed_ns:
        count, at = count + 1, at + rng.expovariate(1 / slice_ns)
    return count


def mean_cpu_ns(used: list[TimeUse]) -> float:
    return sum(one.cpu_ns for one in used) / len(used)


@pytest.mark.parametrize("varies", [False, True])
@pytest.mark.parametrize(("hold_us", "think_us"), [(100, 300), (200, 50), (5, 500)])
def test_computing_is_found_beside_waits_for_cpus(
    hold_us: int, think_us: int, varies: bool
) -> None:
    rng = Random(1)

    def length(us: int) -> int:
        return round(us * 1000 * (rng.expovariate(1) if varies else 1.0))

    true_ns = {
        pair: [length(us) for _ in range(3000)]
        for pair, us in zip(PAIRS, (hold_us, think_us), strict=True)
    }
    durations_ns = preempted(rng, true_ns, slice_ns=3e6, queued_ns=10e6)
    cpu_ns = sum(map(sum, true_ns.values()))
    used = split(durations_ns, dict.fromkeys(PAIRS, 1.0), cpu_ns)
    for pair in PAIRS:
        true = sum(true_ns[pair]) / len(true_ns[pair])
        assert mean_cpu_ns(used[pair]) == pytest.approx(true, rel=0.1), pair
    found = sum(one.cpu_ns for parts in used.values() for one in parts)
    assert found == pytest.approx(cpu_ns, rel=0.01)


def test_the_wait_for_a_cpu_after_each_sleep_is_no_work() -> None:
    """Beside other programs, threads sleep without the lock and compute with it."""
    rng = Random(1)
    sleep_ns, hold_ns = 1_000_000, 900_000
    queued_ns = [round(rng.expovariate(1 / 800_000)) for _ in range(1000)]
    durations_ns = {
        HOLD: [hold_ns + rng.choice([0, 0, 0, 0, 3_000_000]) for _ in queued_ns],
        THINK: [sleep_ns + 20_000 + one for one in queued_ns],
    }
    ready_share = 1 - sleep_ns * len(queued_ns) / sum(durations_ns[THINK])
    cpu_ns = (hold_ns + 20_000) * len(queued_ns)
    used = split(durations_ns, {HOLD: 1.0, THINK: ready_share}, cpu_ns)
    assert mean_cpu_ns(used[HOLD]) == pytest.approx(hold_ns, rel=0.05)


def test_a_computation_of_many_slices_does_not_take_from_short_ones() -> None:
    rng = Random(1)
    true_ns = {HOLD: [100_000] * 500, THINK: [9_000_000] * 500}
    durations_ns = preempted(rng, true_ns, slice_ns=3e6, queued_ns=20e6)
    used = split(durations_ns, dict.fromkeys(PAIRS, 1.0), sum(map(sum, true_ns.values())))
    assert mean_cpu_ns(used[HOLD]) == pytest.approx(100_000, rel=0.1)
    assert mean_cpu_ns(used[THINK]) == pytest.approx(9_000_000, rel=0.1)


def test_nothing_is_cut_if_the_threads_always_had_a_cpu() -> None:
    durations_ns = {HOLD: [10, 20, 30_000], THINK: [5000]}
    used = split(durations_ns, {HOLD: 1.0, THINK: 0.2}, 31_030)
    assert used[HOLD] == [TimeUse(10, 0), TimeUse(20, 0), TimeUse(30_000, 0)]
    assert used[THINK] == [TimeUse(1000, 4000)]


def test_no_thread_sleeps_for_less_time_than_a_switch_takes() -> None:
    used = split({HOLD: [100], THINK: [20_000]}, {HOLD: 0.9, THINK: 0.8}, 16_100)
    assert used == {HOLD: [TimeUse(100, 0)], THINK: [TimeUse(16_000, 4000)]}


def test_the_kernel_limits_what_the_samples_say() -> None:
    boundaries = {1: [boundary(0, At.GOT), boundary(1000, At.RELEASED)]}
    samples = [StateSample(1, 10 * number, number % 2 == 0) for number in range(1, 100)]
    shares = ReadyShares(boundaries, samples)
    for cpu_ns, queued_ns, expected in ((100, 100, 0.2), (700, 100, 0.7), (300, 500, 0.5)):
        [found] = shares.shares_of({HOLD: 1000}, cpu_ns, queued_ns).values()
        assert found == pytest.approx(expected, abs=0.02)


def test_sleep_is_not_cut() -> None:
    used = split({HOLD: [10_000, 10_000, 90_000]}, {HOLD: 0.5}, 15_000)
    assert [one.sleep_ns for one in used[HOLD]] == [5000, 5000, 45_000]
    assert [one.cpu_ns for one in used[HOLD]] == [5000, 5000, 5000]
