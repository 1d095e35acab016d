"""Threads: the stack of a thread, and the mean of where time went."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.model import ActivityState, Kind, ThreadActivity, ThreadState, TimeSplit


def test_the_stack_of_a_thread_is_that_of_its_wait() -> None:
    now = ThreadActivity(1, ActivityState.BLOCKED, "read", stack=9)
    thread = records.thread(1, "w", ThreadState.OTHER)
    assert thread.stack == 0
    active = replace(thread, now=now)
    assert active.stack == 9
    assert replace(active, waiting_for=records.wait(1, Kind.MUTEX, 1.0, stack=4)).stack == 4


def test_the_mean_of_times() -> None:
    assert TimeSplit.mean([]) is None
    one = TimeSplit(cpu=0.5, idle=0.5, unknown=("disk",))
    assert TimeSplit.mean([one]) is one
    mean = TimeSplit.mean([one, TimeSplit(contended=1.0, unknown=("disk", "idle"))])
    assert mean is not None
    assert (mean.cpu, mean.idle, mean.contended) == (0.25, 0.25, 0.5)
    assert mean.unknown == ("disk", "idle")
    assert sum([mean.cpu, mean.runnable, mean.contended, mean.idle, mean.disk, mean.other]) == (
        pytest.approx(1.0)
    )
