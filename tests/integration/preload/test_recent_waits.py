"""The waiting of the last minute, of a real program."""

from __future__ import annotations

import time
from collections import defaultdict

import pytest
from support.targets import StartTarget

from locktop.collector.analysis.recent_waits import PART_S, PARTS
from locktop.collector.sources.attach import attach


def test_the_parts_add_up_to_the_growth_of_the_waits(start_target: StartTarget) -> None:
    target = start_target("busy_crowd", "8")
    target.expect("ready")
    source = attach(target.pid)
    try:
        first = source.scan(resolve=False)
        assert not any(map(sum, first.recent_lock_waits.values()))
        began, last = time.monotonic(), first
        before = {lock.id: lock.counted_wait_s for lock in first.locks}
        # A wait that ends while it is read may shrink once; a part never shrinks.
        grown: dict[int, float] = defaultdict(float)
        while not last.recent_lock_waits or last is first:
            last = source.scan(resolve=False)
            for lock in last.locks:
                grown[lock.id] += max(lock.counted_wait_s - before.get(lock.id, 0.0), 0.0)
                before[lock.id] = lock.counted_wait_s
        if time.monotonic() - began > PARTS * PART_S - PART_S:
            pytest.skip("the machine took most of a minute for some scans")
        for lock in last.locks:
            parts = last.recent_lock_waits.get(lock.id, ())
            assert sum(parts) == pytest.approx(grown[lock.id], rel=0.01, abs=1e-3), lock.name
        waited = {one.tid: sum(last.recent_thread_waits.get(one.tid, ())) for one in last.threads}
        assert any(waited.values())
    finally:
        source.close()
