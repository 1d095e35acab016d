"""The outcome of `locktop bench profile` says when the spread leaves it open."""

from __future__ import annotations

import pytest

from locktop.collector.extensions.bench.costs import Spread
from locktop.collector.extensions.bench.machine_info import this_machine
from locktop.collector.extensions.bench.profile_costs import IntervalCost, ProfileCosts, text


@pytest.mark.parametrize(
    ("low", "median", "high", "verdict"),
    [
        (-0.01, 0.01, 0.015, "1.00 % at the smallest interval, within 2 %"),
        (0.03, 0.05, 0.06, "5.00 % at the smallest interval, over 2 %"),
        (-0.1, 0.01, 0.1, "1.00 % at the smallest interval, with quartiles on both sides of 2 %"),
        (-0.1, 0.05, 0.1, "5.00 % at the smallest interval, with quartiles on both sides of 2 %"),
    ],
)
def test_the_outcome_tells_what_the_spread_allows(
    low: float, median: float, high: float, verdict: str
) -> None:
    row = IntervalCost("timer", 4_000_000, Spread(median=median, low=low, high=high), 250.0)
    found = ProfileCosts(machine=this_machine(), pairs=3, rows=(row,), missing=())
    assert f"timer: {verdict}." in text(found)
