"""The age of a deadlock is that of its newest wait, and a lower bound if that wait's is one."""

from __future__ import annotations

import pytest

from locktop.collector.analysis import deadlocks
from locktop.collector.analysis.wait_for_graph import BlockedThread, Request, WaitForGraph
from locktop.collector.model import BlockReason


@pytest.mark.parametrize(
    ("durations", "bounds", "is_lower_bound"),
    [
        ((2.0, 3.0), (True, False), True),
        ((2.0, 3.0), (False, True), False),
        ((2.0, 2.0), (True, True), True),
    ],
)
def test_the_newest_wait_closed_the_cycle(
    durations: tuple[float, float], bounds: tuple[bool, bool], is_lower_bound: bool
) -> None:
    blocked = {
        tid: BlockedThread(
            tid,
            1,
            100 + tid,
            (Request(BlockReason.HELD, frozenset({3 - tid})),),
            duration_s=duration_s,
            is_lower_bound=bound,
        )
        for tid, duration_s, bound in zip((1, 2), durations, bounds, strict=True)
    }
    (found,) = deadlocks.find(WaitForGraph(blocked, frozenset()))
    assert (found.since_s, found.is_lower_bound) == (2.0, is_lower_bound)
