"""The activity of threads that wait for no lock: their system call and their stack."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing

import pytest
from support import tool
from support.pythons import PYTHON
from support.targets import PATIENCE_S, StartTarget, Target, source_of

from locktop.collector.model import ActivityState, Snapshot, Thread
from locktop.collector.render.text import report
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.collector.sources.launch import preload_environment

both_ways = pytest.mark.parametrize("prepared", [True, False], ids=["prepared", "unprepared"])


def thread_of(seen: Snapshot, tid: int) -> Thread:
    (found,) = (thread for thread in seen.threads if thread.tid == tid)
    return found


def until(source: Source, reached: Callable[[Snapshot], bool], resolve: bool = False) -> Snapshot:
    deadline = time.monotonic() + PATIENCE_S
    while not reached(seen := source.scan(resolve)):
        assert time.monotonic() < deadline, seen
    return seen


@both_ways
def test_a_thread_that_may_hold_a_python_lock_shows_its_call_and_its_functions(
    prepared: bool,
) -> None:
    """A lock of Python has no known holder. The activity of the other threads helps the user."""
    command = [PYTHON, str(source_of("python_holder_receives"))]
    with Target(command, preload_environment(None) if prepared else None) as target:
        truth = target.truth()

        def functions(seen: Snapshot) -> list[str]:
            frames = seen.stacks.get(thread_of(seen, truth["has"]).stack, ())
            return [frame.function for frame in frames if frame.module == "python"]

        def is_ready(seen: Snapshot) -> bool:
            waits = [thread_of(seen, tid).waiting_for for tid in truth["want"]]
            return bool(functions(seen)) and None not in waits

        with closing(attach(target.pid)) as source:
            seen = until(source, is_ready, resolve=True)
        assert functions(seen)[:2] == ["fetches", "has_the_lock"]
        now = thread_of(seen, truth["has"]).now
        assert now is not None
        assert (now.doing, now.call) == (ActivityState.BLOCKED, "recvfrom")
        assert now.what.startswith(f"recvfrom({truth['fd']} -> unix socket ")
        for tid in truth["want"]:
            waiting = thread_of(seen, tid)
            assert waiting.waiting_for is not None
            assert waiting.now is None
        page = report.render(seen)
        name = thread_of(seen, truth["has"]).name
        assert f"thread {truth['has']} ({name}) in {now.what}" in " ".join(page.split())
        assert "      fetches at python_holder_receives.py:16\n" in page


@both_ways
def test_only_the_followed_thread_shows_its_activity(
    prepared: bool, start_target: StartTarget, start_unprepared: StartTarget
) -> None:
    target = (start_target if prepared else start_unprepared)("holder_activities", "receives")
    what = target.line()
    target.expect("ready")
    with closing(attach(target.pid)) as source:
        assert not any(thread.now for thread in source.scan().threads)
        seen = source.scan(resolve=True)
        (asleep,) = (one.tid for one in seen.threads if one.now and one.now.what == what)
        source.follow(asleep)
        seen = until(source, lambda seen: thread_of(seen, asleep).now is not None)
        assert [one.tid for one in seen.threads if one.now] == [asleep]
        now = thread_of(seen, asleep).now
        assert now is not None
        assert now.what == what
        until(source, lambda seen: bool(thread_of(seen, asleep).stack))

        def lasts(seen: Snapshot) -> bool:
            now = thread_of(seen, asleep).now
            return now is not None and now.duration_s > 0.05

        until(source, lasts)
        source.follow(0)
        assert not any(thread.now for thread in source.scan().threads)


@both_ways
def test_a_computing_thread_has_activity_running(
    prepared: bool, start_target: StartTarget, start_unprepared: StartTarget
) -> None:
    target = (start_target if prepared else start_unprepared)("holder_activities", "runs")
    target.line()
    target.expect("ready")

    def runs(seen: Snapshot) -> bool:
        return any(one.now and one.now.doing is ActivityState.RUNNING for one in seen.threads)

    with closing(attach(target.pid)) as source:
        seen = until(source, runs, resolve=True)
    (running,) = (one for one in seen.threads if one.now and one.now.doing is ActivityState.RUNNING)
    assert f"thread {running.tid} ({running.name}) running" in report.render(seen)


def test_a_json_snapshot_has_the_activity() -> None:
    with Target([PYTHON, str(source_of("python_holder_receives"))]) as target:
        truth = target.truth()
        document = tool.snapshot(target.pid)
    activities = {one["tid"]: one["now"] for one in document["threads"]}
    assert activities[truth["has"]]["doing"] == "blocked"
    assert activities[truth["has"]]["call"] == "recvfrom"
    assert [activities[tid] for tid in truth["want"]] == [None, None]
