"""Threads that wait deep inside their work, beside threads of a pool that wait for work."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest
from support import tool
from support.eventually import until
from support.targets import Target

from locktop.collector.render.words import amid_work, verdict
from locktop.collector.sources.attach import attach

StartTarget = Callable[..., Target]


@pytest.fixture(params=["start_target", "start_unprepared"])
def target(request: pytest.FixtureRequest) -> Target:
    """The program, with the library and without."""
    start: StartTarget = request.getfixturevalue(request.param)
    started = start("waits_amid_work")
    started.expect("ready")
    return started


def test_only_waits_deep_in_the_program_are_amid_work(target: Target) -> None:
    with closing(attach(target.pid)) as source:
        for _ in range(100):
            snapshot = source.scan(resolve=True)
            if len(amid_work.waiters(snapshot)) == 3:
                break
    assert {thread.name for thread in amid_work.waiters(snapshot)} == {"session"}
    pool = [thread for thread in snapshot.threads if thread.name == "pool"]
    assert [snapshot.why[thread.tid] for thread in pool] == ["condition"] * 3
    assert "3 waiting amid their work" in verdict.line(snapshot)
    target.go_on("flushed")
    target.expect("done")


def test_a_check_names_them_and_finds_no_deadlock(target: Target) -> None:

    def are_named() -> bool:
        done = tool.run("check", "-p", target.pid)
        assert done.returncode == 0, done.stdout
        # On a busy machine a sampled process has not all stacks at once.
        return "3 waiting amid their work" in done.stdout

    until(are_named, "the waits amid work")
