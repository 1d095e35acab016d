"""The activity of a thread in words."""

from __future__ import annotations

import pytest
from unit.builders import records

from locktop.collector.model import ActivityState, Held, Kind, ThreadActivity, ThreadState
from locktop.collector.render.words import activity

BLOCKED = ActivityState.BLOCKED


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (None, ""),
        (ThreadActivity(12, ActivityState.STOPPED), ""),
        (ThreadActivity(11, ActivityState.WAITING), ""),
        (ThreadActivity(11, ActivityState.STOPPED), "stopped"),
        (ThreadActivity(11, ActivityState.ENDED), "ended, and never released the lock"),
        (ThreadActivity(11, ActivityState.RUNNING), "running"),
        (ThreadActivity(11, ActivityState.RUNNING, cpu=0.0), "running (0% of a CPU)"),
        (ThreadActivity(11, BLOCKED), "asleep in the kernel"),
        (ThreadActivity(11, BLOCKED, duration_s=1.3), "asleep in the kernel for 1.30 s"),
        (ThreadActivity(11, BLOCKED, "write"), "in write"),
        (
            ThreadActivity(11, BLOCKED, "write", "write(7 -> /x)", 1.3, is_lower_bound=True),
            "in write(7 -> /x) for at least 1.30 s",
        ),
    ],
)
def test_the_activity_of_a_holder(now: ThreadActivity | None, words: str) -> None:
    assert activity.doing(now, 11) == words


@pytest.mark.parametrize(
    ("state", "holds", "waits", "word"),
    [
        (ThreadState.IDLE, False, False, "idle"),
        (ThreadState.IDLE, True, False, "asleep"),
        (ThreadState.IDLE, True, True, "idle"),
        (ThreadState.RUNNING, True, False, "running"),
    ],
)
def test_a_thread_that_sleeps_with_a_lock_is_asleep(
    state: ThreadState, holds: bool, waits: bool, word: str
) -> None:
    thread = records.thread(
        11,
        "w",
        state,
        holds=(Held(1, 0, 1.0),) * holds,
        waiting_for=records.wait(2, Kind.COND, 1.0) if waits else None,
    )
    assert activity.state(thread, ()) == word
    assert activity.state(thread, (thread.tid + 1,)) == word
