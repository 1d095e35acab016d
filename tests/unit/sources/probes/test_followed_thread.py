"""The activities of the threads that a scan queries, of a real process."""

from __future__ import annotations

import subprocess
from collections.abc import Collection
from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from support.eventually import until
from unit.builders.records import snapshot, thread
from unit.builders.waits import wait

from locktop.collector.linux.threads import KernelThreads
from locktop.collector.model import ActivityState, Thread, ThreadActivity, ThreadState
from locktop.collector.sources.probes import followed_thread
from locktop.collector.sources.probes.followed_thread import (
    FollowedThread,
    only_thread_that_goes_on,
)


class SlowStacks:
    """Unwinds no stack, and takes an hour for each."""

    def __init__(self, clock: list[float]) -> None:
        self._clock = clock

    def stack_id(self, tid: int, sleep: object, asleep: object) -> int:
        self._clock[0] += 3600.0
        return 0

    def was_stopped(self, tid: int) -> bool:
        return False

    def running(self, tids: Collection[int], budget_s: float) -> dict[int, int]:
        return {}


def test_a_slow_unwinder_leaves_the_time_for_the_text_of_a_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    monkeypatch.setattr(followed_thread, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as blocked:
        pid = blocked.pid
        tasks = KernelThreads(pid, pid)
        try:
            followed = FollowedThread(pid, tasks)
            draft = snapshot((thread(pid, "cat", ThreadState.OTHER),), ()).draft()

            def activity() -> ThreadActivity | None:
                followed.annotate(draft, True, SlowStacks(clock))
                return draft.threads[0].now

            def reads() -> bool:
                now = activity()
                return now is not None and (now.doing, now.call) == (ActivityState.BLOCKED, "read")

            until(reads, "the read of cat")
            now = activity()
            assert now is not None
            assert now.what.startswith("read(0 -> pipe")
        finally:
            tasks.close()
            blocked.communicate()


def waits(tid: int, *holders: int) -> Thread:
    """Return a thread that waits for a lock with these known holders."""
    return thread(tid, f"t{tid}", ThreadState.WAITING, waiting_for=replace(wait(), holders=holders))


def goes_on(tid: int, *, alive: bool = True, pid: int = 0) -> Thread:
    """Return a thread that waits for nothing."""
    return replace(thread(tid, f"t{tid}", ThreadState.RUNNING), alive=alive, pid=pid)


@pytest.mark.parametrize(
    ("threads", "tid"),
    [
        ([waits(1), waits(2), goes_on(3)], 3),
        ([waits(1, 3), waits(2), goes_on(3)], 3),
        ([waits(1, 3), waits(2, 3), goes_on(3)], 0),
        ([waits(1), goes_on(2), goes_on(3)], 0),
        ([waits(1), goes_on(2, alive=False), goes_on(3)], 3),
        ([waits(1), goes_on(2, pid=7), goes_on(3)], 3),
        ([waits(1), waits(2)], 0),
        ([goes_on(3)], 0),
        ([], 0),
    ],
    ids=[
        "unknown holders",
        "one unknown holder",
        "known holders",
        "two go on",
        "an ended thread",
        "a thread of a peer process",
        "all wait",
        "nobody waits",
        "no threads",
    ],
)
def test_theonly_thread_that_goes_on_may_hold_a_lock_of_an_unknown_holder(
    threads: list[Thread], tid: int
) -> None:
    assert only_thread_that_goes_on(threads) == tid
