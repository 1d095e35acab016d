"""The types of the futexes of real runtimes, by the functions of their waiters."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from support.targets import PATIENCE_S, Compiler, StartTarget, Target

from locktop.collector.extensions.stacks import groups, text_report
from locktop.collector.model import Kind, Lock, Snapshot, Thread
from locktop.collector.render.text.report import render
from locktop.collector.sources.attach import attach

#: For each wait of the program: the type of the futex, and whether the wait is idle.
WANTED = {
    "atomic": ("std::atomic wait", True),
    "latch": ("std::latch wait", True),
    "barrier": ("std::barrier wait", True),
    "semaphore": ("std::counting_semaphore wait", True),
    "future": ("std::future wait", True),
    "static": ("C++ static guard", False),
    "stdio": ("libc's fflush", False),
}


def scan_until_typed(pid: int, tids: set[int]) -> tuple[Snapshot, dict[int, tuple[Thread, Lock]]]:
    """Scan until all threads wait for a lock with a type; return their locks."""
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


def test_waits_of_the_cxx_runtime_and_of_libc_have_types(start_unprepared: StartTarget) -> None:
    target = start_unprepared("waits_built_on_futex")
    truth = target.truth()
    assert truth.keys() == WANTED.keys()
    seen, found = scan_until_typed(target.pid, set(truth.values()))
    for name, tid in truth.items():
        thread, lock = found[tid]
        wait = thread.waiting_for
        assert wait is not None
        assert (lock.kind, lock.type, wait.idle) == (Kind.FUTEX, *WANTED[name]), name
        assert wait.holders == (), "a futex has no owner"
        functions = [frame.function for frame in seen.stacks[wait.stack]]
        assert any(f"waits_{name}" in function for function in functions), functions
    assert seen.deadlocks == ()


def test_a_wait_inside_libc_is_unobserved_and_has_a_type(
    start_target: StartTarget,
) -> None:
    target = start_target("waits_built_on_futex")
    tid = target.truth()["stdio"]
    deadline = time.monotonic() + PATIENCE_S
    with closing(attach(target.pid)) as source:
        seen = source.scan(resolve=True)
        # On a busy machine a scan may have no time to read the stack.
        while not any(wait.stack for wait in seen.unobserved_waits):
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
def test_sampled_waits_of_openmp_have_types(
    what: str, type_: str, idle: bool, compiler: Compiler
) -> None:
    program = compiler.program("openmp_team_waits", "-fopenmp")
    with Target([program, what], {"OMP_WAIT_POLICY": "passive"}) as target:
        main = target.truth()["main"]
        others = {int(one.name) for one in Path(f"/proc/{target.pid}/task").iterdir()} - {main}
        _, found = scan_until_typed(target.pid, others)
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
def test_sampled_waits_of_rust_have_types(
    primitive: str, type_: str, start_unprepared: StartTarget, need: Callable[[str], Path]
) -> None:
    need("rustc")
    target = start_unprepared("rust_primitives", primitive)
    tid = target.truth()["waiter"]
    _, found = scan_until_typed(target.pid, {tid})
    assert found[tid][1].type == type_
    target.go_on()
    assert target.finish() == (0, ["ok"])


@pytest.mark.parametrize(
    "flags", [(), ("-Copt-level=2",), ("-Csymbol-mangling-version=v0", "-Copt-level=2")]
)
def test_a_lock_of_rust_is_named_by_what_it_guards(
    flags: tuple[str, ...], start_unprepared: StartTarget, need: Callable[[str], Path]
) -> None:
    """The older mangling of names lacks the type, which the debug information has."""
    need("rustc")
    target = start_unprepared("rust_guarded_types", flags=flags)
    waiters = target.truth()["waiters"]
    snapshot, typed = scan_until_typed(target.pid, set(waiters))
    journal, entries, count = (typed[tid][1].name for tid in waiters)
    assert (journal, entries) == ("Rust Mutex<Journal>", "Rust RwLock<Vec<Entry>>")
    assert "Rust Mutex<u64> in " in count
    assert "Store" in count, "a type of the language alone says little"
    assert "waits for Rust Mutex<Journal>" in text_report.render(groups.find(snapshot), 200)
    assert "futex Rust" not in render(snapshot, width=200)
