"""The waiting of the last minute adds up to what was added, part by part."""

from __future__ import annotations

import random

import pytest
from support.seeds import seeds

from locktop.collector.analysis.recent_waits import PART_S, PARTS, RecentWaits


def test_waits_stand_in_the_parts_in_which_they_were() -> None:
    recent = RecentWaits()
    recent.add(101.0, 1.0, [(7, 0.25)])
    recent.add(104.0, 2.0, [(7, 0.5)])
    recent.add(106.0, 2.0, [(7, 1.0)])  # half of it before the border at 105
    assert recent.snapshot()[7][-2:] == pytest.approx((1.25, 0.5))
    recent.add(111.0, 1.0, [])
    assert recent.snapshot()[7][-3:] == pytest.approx((1.25, 0.5, 0.0))


def test_what_is_older_than_a_minute_is_forgotten() -> None:
    recent = RecentWaits()
    recent.add(100.0, 1.0, [(7, 0.25), (8, 0.1)])
    recent.add(101.0 + PARTS * PART_S, 1.0, [(8, 0.1)])
    assert recent.snapshot().keys() == {8}
    assert sum(recent.snapshot()[8]) == pytest.approx(0.1)
    recent.add(5000.0, 1.0, [])
    assert recent.snapshot() == {}


def test_a_first_scan_and_no_waits_leave_nothing() -> None:
    recent = RecentWaits()
    recent.add(100.0, 0.0, [(7, 3.0)])
    recent.add(101.0, 1.0, [(8, 0.0)])
    assert all(sum(parts) == 0.0 for parts in recent.snapshot().values())


def test_any_intervals_of_a_minute_add_up() -> None:
    for seed in seeds(20):
        rng = random.Random(seed)
        recent, now_s, total = RecentWaits(), 1000.0 + 5 * rng.random(), 0.0
        end = (now_s // PART_S + PARTS - 1) * PART_S
        while now_s < end:
            step = rng.choice([0.1, 0.5, 2.0, 7.0])
            now_s = min(now_s + step, end)
            waited = rng.random() * 3
            before = now_s - step
            if before < 1000.0:
                continue
            recent.add(now_s, min(step, now_s - 1000.0), [(1, waited)])
            total += waited
        assert sum(recent.snapshot()[1]) == pytest.approx(total)
