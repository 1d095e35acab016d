"""What futexes are, by the functions of those that wait for them, of real runtimes."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from support.targets import PATIENCE_S, Compiler, StartTarget, Target

from locktop.collector.model import Kind, Lock, Snapshot, Thread
from locktop.collector.sources.attach import attach

#: By what a thread waits in: its type, whether that is known to be contention.
TOLD = {
    "atomic": ("std::atomic wait", True),
    "latch": ("std::latch wait", True),
    "barrier": ("std::barrier wait", True),
    "semaphore": ("std::counting_semaphore wait", True),
    "future": ("std::future wait", True),
    "static": ("C++ static guard", False),
    "stdio": ("libc's fflush", False),
}


def told(pid: int, tids: set[int]) -> tuple[Snapshot, dict[int, tuple[Thread, Lock]]]:
    """Look until all of them are seen to wait for a futex of which something is told."""
    deadline = time.monotonic() + PATIENCE_S
    with closing(attach(pid)) as source:
        while True:
            seen = source.scan(resolve=True)
            locks = {lock.id: lock for lock in seen.locks if lock.type}
            found = {
                thread.tid: (thread, locks[wait.lock])
                for thread in seen.threads
                if (wait := thread.waiting_for) is not None and wait.lock in locks
            }
            if tids <= found.keys():
                return seen, found
            assert time.monotonic() < deadline, found


def test_what_is_built_on_futexes(start_unprepared: StartTarget) -> None:
    target = start_unprepared("waits_built_on_futex")
    truth = target.truth()
    assert truth.keys() == TOLD.keys()
    seen, found = told(target.pid, set(truth.values()))
    for name, tid in truth.items():
        thread, lock = found[tid]
        wait = thread.waiting_for
        assert wait is not None
        assert (lock.kind, lock.type, wait.idle) == (Kind.FUTEX, *TOLD[name]), name
        assert wait.holders == (), "nobody says who has it"
        functions = [frame.function for frame in seen.stacks[wait.stack]]
        assert any(f"waits_{name}" in function for function in functions), functions
    assert seen.deadlocks == ()


def test_a_lock_inside_the_c_library_that_the_preloaded_one_does_not_see(
    start_target: StartTarget,
) -> None:
    target = start_target("waits_built_on_futex")
    tid = target.truth()["stdio"]
    deadline = time.monotonic() + PATIENCE_S
    with closing(attach(target.pid)) as source:
        seen = source.scan(resolve=True)
        while not any(
            wait.stack for wait in seen.unobserved_waits
        ):  # a busy machine may need more time
            assert time.monotonic() < deadline
            seen = source.scan(resolve=True)
    (wait,) = seen.unobserved_waits
    assert (wait.tid, wait.type, wait.why) == (tid, "libc's fflush", "libc-lock")
    assert seen.unobserved_waiters == (tid,)
    states = {thread.tid: str(thread.state) for thread in seen.threads}
    assert states[tid] == "waiting"


@pytest.mark.parametrize(
    ("what", "type_", "idle"),
    [("barrier", "OpenMP barrier", True), ("critical", "OpenMP lock", False)],
)
def test_openmp_by_sampling(what: str, type_: str, idle: bool, compiler: Compiler) -> None:
    program = compiler.program("openmp_team_waits", "-fopenmp")
    with Target([program, what], {"OMP_WAIT_POLICY": "passive"}) as target:
        main = target.truth()["main"]
        others = {int(one.name) for one in Path(f"/proc/{target.pid}/task").iterdir()} - {main}
        _, found = told(target.pid, others)
        (lock,) = {lock.id: lock for _, lock in found.values()}.values()
        assert lock.type == type_
        caller = "meet" if what == "barrier" else "take_critical"
        assert lock.name.startswith(f"{type_} in {caller} (openmp_team_waits.c:"), lock.name
        assert lock.idle is idle
        target.go_on()
        target.expect("done")


@pytest.mark.parametrize(
    ("primitive", "type_"),
    [("mutex", "Rust Mutex"), ("condvar", "Rust Condvar"), ("channel", "Rust park")],
)
def test_rust_by_sampling(
    primitive: str, type_: str, start_unprepared: StartTarget, need: Callable[[str], Path]
) -> None:
    need("rustc")
    target = start_unprepared("rust_primitives", primitive)
    tid = target.truth()["waiter"]
    _, found = told(target.pid, {tid})
    assert found[tid][1].type == type_
    target.go_on()
    assert target.finish() == (0, ["ok"])
