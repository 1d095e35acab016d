"""What the screen and the commands say of the levels."""

from __future__ import annotations

from locktop.collector.sources.launch import LEVELS as THERE_ARE
from locktop.tui.levels import LEVELS, described


def test_every_level_is_described_in_the_order_of_what_it_does() -> None:
    assert tuple(level.name for level in LEVELS) == THERE_ARE
    assert [line.split()[0] for line in described().splitlines()] == list(THERE_ARE)


def test_each_costs_no_less_than_the_one_before() -> None:
    costs = [float(level.costs.removesuffix("x")) for level in LEVELS]
    assert costs == sorted(costs)
