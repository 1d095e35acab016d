"""The share of all threads' time that went into waits for a lock."""

from __future__ import annotations

import random

import pytest

from locktop.collector.analysis.lock_pressure import PressurePoint, pressure


def test_one_of_two_threads_waits_in_the_second_half() -> None:
    points = [PressurePoint(0.0, 3.0, 2), PressurePoint(5.0, 3.0, 2), PressurePoint(10.0, 8.0, 2)]
    assert pressure(points, 2) == pytest.approx((0.0, 0.5))
    assert pressure(points, 4) == pytest.approx((0.0, 0.0, 0.5, 0.5))


def test_too_few_points_give_nothing() -> None:
    assert pressure([], 6) == ()
    assert pressure([PressurePoint(1.0, 2.0, 3)], 6) == ()
    assert pressure([PressurePoint(1.0, 2.0, 3)] * 2, 6) == ()


def test_no_thread_gives_no_pressure() -> None:
    assert pressure([PressurePoint(0.0, 0.0, 0), PressurePoint(1.0, 1.0, 0)], 1) == (0.0,)


def test_the_slices_add_up_to_the_whole() -> None:
    for seed in range(200):
        chance = random.Random(seed)
        threads, time_s, wait_s, points = chance.randrange(1, 9), 0.0, 0.0, []
        for _ in range(chance.randrange(2, 30)):
            points.append(PressurePoint(time_s, wait_s, threads))
            passed_s = chance.uniform(0.01, 2.0)
            time_s += passed_s
            wait_s += chance.random() * passed_s * threads
        found = pressure(points, chance.randrange(1, 10))
        assert all(0.0 <= share <= 1.0 for share in found)
        whole = points[-1].wait_s / points[-1].time_s / threads
        assert sum(found) / len(found) == pytest.approx(whole, abs=1e-9)
