"""Deadlocks of Python locks at addresses that had other locks before."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial

import pytest
from support import tool
from support.eventually import until
from support.pythons import PYTHON, PYTHONS, all_pythons, need_semaphores
from support.scans import settle
from support.targets import PATIENCE_S, Target, source_of

from locktop.collector.model import BlockReason, Deadlock, Snapshot
from locktop.collector.sources.attach import attach
from locktop.collector.sources.launch import preload_environment

StartPython = Callable[..., Target]


@pytest.fixture
def start_python() -> Iterator[StartPython]:
    """Starts tests/targets/languages/python_locks_deadlock.py."""
    started: list[Target] = []

    def start(way: str, python: str = PYTHON) -> Target:
        need_semaphores(python)
        command = [python, str(source_of("python_locks_deadlock")), way]
        started.append(Target(command, preload_environment(None)))
        return started[-1]

    yield start
    for target in started:
        target.stop()


def certain(pid: int) -> tuple[Snapshot, Deadlock]:
    """Scan until a deadlock is certain."""
    deadline = time.monotonic() + PATIENCE_S
    with closing(attach(pid)) as source:
        while True:
            seen = source.scan()
            if any(found.certain for found in seen.deadlocks):
                break
            assert time.monotonic() < deadline, seen.deadlocks
            time.sleep(0.05)  # leaves the CPU to the target
        seen = source.scan(resolve=True)
    (found,) = seen.deadlocks
    assert found.certain
    return seen, found


def functions(seen: Snapshot, stack: int) -> list[str]:
    """The Python functions of a stack, innermost first."""
    return [frame.function for frame in seen.stacks[stack] if frame.module == "python"]


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("way", ["crossed", "rlocks"])
def test_two_locks_taken_in_different_orders_are_certain(
    way: str, python: str, start_python: StartPython
) -> None:
    target = start_python(way, python)
    tids = sorted([int(target.line()), int(target.line())])
    seen, found = certain(target.pid)
    first, second = found.cycle
    assert [(first.tid, first.held_by), (second.tid, second.held_by)] == [
        (tids[0], tids[1]),
        (tids[1], tids[0]),
    ]
    assert {edge.reason for edge in found.cycle} == {BlockReason.GOT}
    assert [functions(seen, edge.stack)[:2] for edge in found.cycle] == [["crosses", "run"]] * 2
    done = tool.run("check", "-p", target.pid)
    assert done.returncode == 1
    assert "crosses at python_locks_deadlock.py" in " ".join(done.stdout.split())


@pytest.mark.parametrize("python", PYTHONS)
def test_a_lock_that_its_thread_wants_again_is_certain(
    python: str, start_python: StartPython
) -> None:
    target = start_python("itself", python)
    tid = int(target.line())
    seen, found = certain(target.pid)
    assert [(edge.tid, edge.held_by) for edge in found.cycle] == [(tid, tid)]
    assert functions(seen, found.cycle[0].stack)[0] == "wants_again"


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(
    ("way", "function"),
    [("forked", "wants_in_child"), ("forked_rlock", "wants_in_child"), ("forked_queue", "put")],
)
def test_a_lock_that_a_thread_of_the_parent_held_at_the_fork_is_certain(
    way: str, function: str, python: str, start_python: StartPython
) -> None:
    child = int(start_python(way, python).line())
    try:
        seen, found = certain(child)
        (edge,) = found.cycle
        assert (edge.tid, edge.held_by, edge.reason) == (child, 0, BlockReason.AT_FORK)
        assert {function, "forked", "fork_with"} <= set(functions(seen, edge.stack))
        done = tool.run("check", "-p", child)
        assert done.returncode == 1
        file = "queue" if way == "forked_queue" else "python_locks_deadlock"
        assert f"{function} at {file}.py:" in " ".join(done.stdout.split())
    finally:
        os.kill(child, signal.SIGKILL)


def test_an_unused_lock_that_its_thread_wants_again_may_be_a_signal(
    start_python: StartPython,
) -> None:
    """Another thread may release the lock, as in threading.Condition."""
    target = start_python("once")
    tid = int(target.line())
    with closing(attach(target.pid)) as source:
        settle(source, tid)
        assert source.scan().deadlocks == source.scan(resolve=True).deadlocks == ()


def _is_doubtful(pid: int) -> bool:
    return tool.run("check", "-p", pid).returncode == 3


@contextmanager
def processes(way: str, prepared: bool) -> Iterator[list[int]]:
    """Run tests/targets/languages/python_process_locks.py; give the ids of its two processes."""
    command = [PYTHON, str(source_of("python_process_locks")), way]
    with Target(command, preload_environment(None) if prepared else None) as target:
        pids = json.loads(target.line())
        try:
            yield pids
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("prepared", [True, False], ids=["prepared", "unprepared"])
def test_a_deadlock_of_processes_is_never_no_deadlock(prepared: bool) -> None:
    """No process knows the other's locks, so the answer is "cannot tell"."""
    with processes("cross", prepared) as pids:
        for pid in pids:
            until(partial(_is_doubtful, pid), "cannot tell")
        said = tool.run("check", "-p", pids[0]).stdout
        assert "crosses at python_process_locks.py:" in said


@pytest.mark.parametrize("prepared", [True, False], ids=["prepared", "unprepared"])
def test_processes_that_wait_for_work_at_a_queue_are_idle(prepared: bool) -> None:
    """The near miss: the queue has a lock of the same type."""
    with processes("queue", prepared) as pids:
        for pid in pids:
            with closing(attach(pid)) as source:
                waits = [thread.waiting_for for thread in source.scan(resolve=True).threads]
            assert all(wait is None or wait.idle for wait in waits)
            done = tool.run("check", "-p", pid)
            assert (done.returncode, done.stdout[:17]) == (0, "no deadlock found")


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("prepared", [True, False], ids=["prepared", "unprepared"])
def test_a_worker_is_idle_before_and_after_its_functions_have_names(
    prepared: bool, python: str
) -> None:
    """On a busy host, Python's functions are known before the names of C functions. Then no frame
    showed the queue, and the verdict stayed.
    """
    command = [python, str(source_of("python_queue_iterated"))]
    with Target(command, preload_environment(None) if prepared else None) as target:
        target.expect("ready")
        with closing(attach(target.pid)) as source:
            source.set_reading_names(False)
            scans = [source.scan() for _ in range(8)]
            source.set_reading_names(True)
            scans += [source.scan(resolve=True) for _ in range(2)]
    waits = [
        thread.waiting_for
        for scan in scans
        for thread in scan.threads
        if thread.waiting_for is not None
    ]
    assert waits
    assert all(wait.idle for wait in waits)


@pytest.mark.parametrize("python", all_pythons())
def test_without_the_library_two_rlocks_are_certain(python: str) -> None:
    """An RLock has its owner."""
    with Target([python, str(source_of("python_locks_deadlock")), "rlocks"]) as target:
        tids = sorted([int(target.line()), int(target.line())])
        _, found = certain(target.pid)
        first, second = found.cycle
        assert [(first.tid, first.held_by), (second.tid, second.held_by)] == [
            (tids[0], tids[1]),
            (tids[1], tids[0]),
        ]
        assert {edge.reason for edge in found.cycle} == {BlockReason.HELD}
        done = tool.run("check", "-p", target.pid)
        assert done.returncode == 1
        assert "held by Thread-" in done.stdout


@pytest.mark.parametrize("python", all_pythons())
def test_without_the_library_two_locks_in_blocks_are_possible(python: str) -> None:
    """A Lock has no owner: the threads are in its `with` blocks, and hold it probably."""
    program = source_of("python_locks_deadlock")
    line = program.read_text().splitlines().index("        with second:") + 1
    with Target([python, str(program), "crossed"]) as target:
        tids = {int(target.line()), int(target.line())}
        certain_only = tool.run("check", "--certain-only", "-p", target.pid)
        assert (certain_only.returncode, "waits for sem" in certain_only.stdout) == (0, False)
        done = tool.run("check", "-p", target.pid)
        assert done.returncode == 3
        said = " ".join(done.stdout.split())
        assert said.startswith("1 possible deadlock, none certain"), said
        for tid in tids:
            assert f"({tid}) waits for Lock in crosses (python_locks_deadlock.py:" in said
        assert said.count("probably held by Thread-") == 2
        assert said.count(f"0 crosses at python_locks_deadlock.py:{line}") == 2


def test_without_the_library_a_lock_that_its_thread_wants_again_has_no_verdict() -> None:
    """A block may release its lock for a time. Then this is no deadlock, but a usual wait."""
    with Target([PYTHON, str(source_of("python_locks_deadlock")), "itself"]) as target:
        tid = int(target.line())
        done = tool.run("check", "-p", target.pid)
        assert done.returncode == 3
        assert done.stdout.startswith("cannot tell whether there is a deadlock: 1 thread has")
        assert f"({tid}) waits for Lock in wants_again" in " ".join(done.stdout.split())
