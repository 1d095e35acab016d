"""Mutexes in shared memory whose owner is a living thread of another process."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from support import tool
from support.containers import contained
from support.targets import PATIENCE_S, Compiler, StartTarget, Target

from locktop.collector.model import Snapshot, ThreadElsewhere
from locktop.collector.render.words import verdict
from locktop.collector.sources.attach import attach

TARGET = "shared_mutex_held_elsewhere"


@pytest.fixture(params=["start_target", "start_unprepared"])
def start(request: pytest.FixtureRequest) -> StartTarget:
    """Starts a target, with the library and without."""
    found: StartTarget = request.getfixturevalue(request.param)
    return found


def until(pid: int, reached: Callable[[Snapshot], bool]) -> Snapshot:
    """Scan until ``reached`` returns true; return that snapshot, with names."""
    deadline = time.monotonic() + PATIENCE_S
    with closing(attach(pid)) as source:
        while not reached(seen := source.scan(resolve=True)):
            assert time.monotonic() < deadline, seen
            time.sleep(0.05)  # leaves the CPU to the target
    return seen


def both_wait(seen: Snapshot) -> bool:
    """Return whether both threads have waited for so long that locktop has searched the owner."""
    waits = [thread.waiting_for for thread in seen.threads]
    return len(waits) == 2 and all(wait and wait.duration_s > 0.6 for wait in waits)


def lasted(seen: Snapshot) -> bool:
    """Return whether both threads have waited for so long that an unknown owner is a doubt."""
    waits = [thread.waiting_for for thread in seen.threads]
    return all(wait and wait.duration_s > verdict.MIN_UNKNOWN_S for wait in waits)


def checked(target: Target) -> str:
    """Return what `locktop check` prints once it knows of both waits and their owner."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        done = tool.run("check", "-p", target.pid)
        if "(2 for one held by" in done.stdout or time.monotonic() > deadline:
            return str(done.stdout)


@pytest.mark.parametrize("how", ["main", "worker"])
def test_the_owner_is_named_with_its_process(start: StartTarget, how: str) -> None:
    target = start(TARGET, how)
    truth = target.truth()
    seen = until(target.pid, lambda seen: both_wait(seen) and bool(seen.threads_elsewhere))
    name = "worker" if how == "worker" else ""
    owner = ThreadElsewhere(truth["holder"], truth["process"], "convert", name)
    assert seen.threads_elsewhere == (owner,)
    assert {thread.waiting_for.holders for thread in seen.threads if thread.waiting_for} == {
        (truth["holder"],)
    }
    (lock,) = (lock for lock in seen.locks if lock.waiters)
    assert lock.holders == (truth["holder"],)
    assert seen.deadlocks == ()


@pytest.mark.parametrize("how", ["main", "worker"])
def test_every_command_says_so(start: StartTarget, how: str) -> None:
    target = start(TARGET, how)
    truth = target.truth()
    process = f"convert {truth['process']}"
    short = f"worker of {process}" if how == "worker" else process
    full = f"{short} (thread {truth['holder']})" if how == "worker" else process
    assert f"(2 for one held by {short})" in checked(target)
    report = " ".join(tool.run("snapshot", "-p", target.pid, "--format", "text").stdout.split())
    assert f"held by {full}" in report
    assert f"{full} holds mutex" in report
    assert f"is not robust: if {process} dies now" in report
    written = json.loads(tool.run("snapshot", "-p", target.pid).stdout)
    assert [(one["pid"], one["comm"]) for one in written["threads_elsewhere"]] == [
        (truth["process"], "convert")
    ]


def test_an_owner_that_waits_for_this_process_leaves_the_verdict_open(
    start_unprepared: StartTarget,
) -> None:
    # With the library in both processes the deadlock is certain.
    target = start_unprepared(TARGET, "crossed")
    target.truth()

    def is_doubtful(seen: Snapshot) -> bool:
        return both_wait(seen) and verdict.is_doubtful(seen)

    seen = until(target.pid, is_doubtful)
    assert [one.waits for one in seen.threads_elsewhere] == [True]
    assert "holder waits in another process" in verdict.line(seen)


def test_an_owner_that_does_something_else_is_no_doubt(start: StartTarget) -> None:
    target = start(TARGET, "main")
    target.truth()
    seen = until(target.pid, lambda seen: lasted(seen) and bool(seen.threads_elsewhere))
    assert [one.waits for one in seen.threads_elsewhere] == [False]
    assert not verdict.is_doubtful(seen)


def test_a_process_without_the_memory_is_not_named(start: StartTarget) -> None:
    target = start(TARGET, "unmapped")
    truth = target.truth()
    seen = until(target.pid, lambda seen: both_wait(seen) and bool(seen.threads_elsewhere))
    assert seen.threads_elsewhere == (ThreadElsewhere(truth["holder"]),)
    said = checked(target)
    assert "held by a thread of another process" in said
    assert "convert" not in said


def test_a_mutex_in_private_memory_has_no_owner_elsewhere(start: StartTarget) -> None:
    target = start(TARGET, "private")
    target.truth()
    assert until(target.pid, both_wait).threads_elsewhere == ()


@pytest.mark.parametrize("is_prepared", [True, False], ids=["prepared", "unprepared"])
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make these namespaces")
def test_the_ids_of_a_container_are_those_of_the_container(
    compiler: Compiler, is_prepared: bool
) -> None:
    with contained(compiler, "root", TARGET, "worker", preloaded=is_prepared) as (target, pid):
        truth = target.truth()
        seen = until(pid, lambda seen: both_wait(seen) and bool(seen.threads_elsewhere))
        (owner,) = seen.threads_elsewhere
        assert (owner.tid, owner.comm, owner.name) == (truth["holder"], "convert", "worker")
        # The truth has the ids of the container; the process is the one that -p takes.
        status = Path(f"/proc/{owner.pid}/status").read_text().split("NSpid:")[1].split("\n")[0]
        assert status.split()[-1] == str(truth["process"])
        assert owner.pid != truth["process"]
