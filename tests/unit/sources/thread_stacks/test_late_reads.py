"""Stacks that a scan missed are read a moment later, of a real process."""

from __future__ import annotations

import subprocess

from msgspec.structs import replace
from unit.builders.records import snapshot, thread

from locktop.collector.model import ActivityState, Snapshot, ThreadActivity, ThreadState
from locktop.collector.sources.thread_stacks import late_reads


def of_process(pid: int, now: ThreadActivity | None = None) -> Snapshot:
    return snapshot((thread(pid, "cat", ThreadState.IDLE, now=now),), ())


def test_the_stack_of_a_sleeping_thread_is_read() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as blocked:
        stacks: dict[int, object] = {}
        while not stacks and blocked.poll() is None:
            stacks = dict(late_reads.read(of_process(blocked.pid), blocked.pid))
        assert stacks.keys() == {blocked.pid}
        blocked.communicate()
    assert not late_reads.read(of_process(blocked.pid), blocked.pid)


def test_a_thread_that_has_a_stack_or_is_stopped_is_left_alone() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as blocked:
        pid = blocked.pid
        known = ThreadActivity(tid=pid, doing=ActivityState.BLOCKED, stack=3)
        assert not late_reads.read(of_process(pid, known), pid)
        stopped = replace(known, doing=ActivityState.STOPPED, stack=0)
        assert not late_reads.read(of_process(pid, stopped), pid)
        blocked.communicate()
