"""The activities of the threads that a scan queries, of a real process."""

from __future__ import annotations

import subprocess
from collections.abc import Collection
from types import SimpleNamespace

import pytest
from support.eventually import until
from unit.builders.records import snapshot, thread

from locktop.collector.linux.threads import KernelThreads
from locktop.collector.model import ActivityState, ThreadActivity, ThreadState
from locktop.collector.sources.probes import followed_thread
from locktop.collector.sources.probes.followed_thread import FollowedThread


class SlowStacks:
    """Unwinds no stack, and takes an hour for each."""

    def __init__(self, clock: list[float]) -> None:
        self._clock = clock

    def stack_id(self, tid: int, sleep: object) -> int:
        self._clock[0] += 3600.0
        return 0

    def was_stopped(self, tid: int) -> bool:
        return False

    def running(self, tids: Collection[int]) -> dict[int, int]:
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
