"""One duration of a holder's call for all parts of a snapshot."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.analysis import longest_calls
from locktop.collector.model import ActivityState, ThreadActivity, ThreadState

READS = ThreadActivity(
    tid=10, doing=ActivityState.BLOCKED, call="read", what="read(3)", duration_s=2.0, stack=7
)


def duration_s(as_thread: ThreadActivity, as_holder: ThreadActivity) -> float:
    thread = replace(records.thread(10, "holder", ThreadState.OTHER), now=as_thread)
    lock = replace(records.lock(1, "g_lock"), holder_activity=as_holder)
    (found,) = longest_calls.apply((thread,), (lock,))
    assert found.now is not None
    assert found.now.stack == as_thread.stack
    return found.now.duration_s


def test_the_later_query_of_the_holder_counts() -> None:
    assert duration_s(READS, replace(READS, duration_s=2.5, stack=8)) == 2.5
    assert duration_s(READS, replace(READS, duration_s=1.5)) == 2.0


@pytest.mark.parametrize(
    "other",
    [{"call": "write"}, {"what": "read(4)"}, {"tid": 11}],
    ids=lambda other: next(iter(other)),
)
def test_another_call_says_nothing(other: dict[str, object]) -> None:
    assert duration_s(READS, replace(READS, duration_s=2.5, **other)) == 2.0
