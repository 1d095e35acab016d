"""The table of the levels that the screen and the commands print."""

from __future__ import annotations

from locktop.collector.shm.control import LEVEL_NAMES
from locktop.collector.sources.levels import LEVELS, description


def test_every_level_is_described_in_the_order_of_its_work() -> None:
    assert tuple(level.name for level in LEVELS) == tuple(LEVEL_NAMES.values())
    assert [line.split()[0] for line in description().splitlines()] == list(LEVEL_NAMES.values())


def test_each_level_costs_no_less_than_the_level_before() -> None:
    costs = [float(level.costs.removesuffix("x")) for level in LEVELS]
    assert costs == sorted(costs)
