"""Each way of linking to the lock functions gives the same results and true figures."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import tool
from support.targets import Compiler, StartTarget, Target

from locktop.collector.sources.launch import preload_environment

LEVELS = [None, "dormant", "all"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86-64 has two versions")
@pytest.mark.parametrize("level", LEVELS)
def test_the_old_version_of_conditions_works(level: str | None, start_target: StartTarget) -> None:
    assert start_target("old_cond_version", level=level).finish() == (0, ["ok"])


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86-64 has two versions")
def test_the_old_version_of_conditions_works_without_the_library(
    start_unprepared: StartTarget,
) -> None:
    assert start_unprepared("old_cond_version").finish() == (0, ["ok"])


@pytest.mark.parametrize("level", LEVELS)
def test_functions_found_by_dlsym_work(level: str | None, start_target: StartTarget) -> None:
    """Of the six ways to find a function, four find the library's, and two find libc's."""
    target = start_target("looks_up_mutex_functions", level=level)
    target.expect("done")
    if level != "dormant":
        lock = tool.lock_named(tool.snapshot(target.pid), "g_found")
        assert (lock["acquisitions"], lock["trylock_failed"]) == (4 * 6 * 2, 6 * 4)
    target.go_on()
    assert target.finish() == (0, ["ok"])


@pytest.mark.parametrize("level", LEVELS)
def test_a_program_with_its_own_pthread_mutex_lock_works(
    level: str | None, start_target: StartTarget
) -> None:
    target = start_target("defines_pthread_mutex_lock", level=level)
    target.expect("done")
    if level != "dormant":
        lock = tool.lock_named(tool.snapshot(target.pid), "g_own")
        assert (lock["acquisitions"], lock["trylock_failed"]) == (1000, 1000)
    target.go_on()
    assert target.finish() == (0, ["ok"])


@pytest.mark.parametrize(
    "flags",
    [("-Wl,-z,now",), ("-Wl,-z,lazy",), ("-no-pie",), ("-no-pie", "-Wl,-z,now"), ("-static-pie",)],
    ids=" ".join,
)
@pytest.mark.parametrize(
    "name", ["errno_and_results", "robust_owner_dies_twice", "cancellation_points"]
)
def test_each_kind_of_executable_has_the_same_results(
    flags: tuple[str, ...], name: str, compiler: Compiler
) -> None:
    """A static program never loads the library, and the variables must not disturb the program."""
    with Target([compiler.program(name, *flags)], preload_environment(None)) as target:
        assert target.finish() == (0, ["ok"])


@pytest.fixture
def semaphores() -> Iterator[tuple[str, str]]:
    """The names of two semaphores, which no other process uses."""
    names = (f"/locktop-test-{os.getpid()}-one", f"/locktop-test-{os.getpid()}-two")
    yield names
    for name in names:
        Path(f"/dev/shm/sem.{name[1:]}").unlink(missing_ok=True)


def test_a_named_semaphore_has_its_name_and_its_waiter(
    semaphores: tuple[str, str], start_target: StartTarget
) -> None:
    target = start_target("named_semaphore", *semaphores)
    for name in semaphores:
        truth = target.truth()
        document = tool.scan_until(
            target.pid,
            lambda document: document["threads"][0]["waiting_for"] is not None,
            f"a thread that waits for {name}",
        )
        waiting = tool.thread_of(document, truth["tid"])["waiting_for"]
        lock = next(lock for lock in document["locks"] if lock["id"] == waiting["lock"])
        assert lock["address"] == truth["address"]
        assert (lock["kind"], lock["name"], lock["waiters"]) == ("sem", name, [truth["tid"]])
        assert (lock["holders"], document["deadlocks"]) == ([], [])
        assert start_target("named_semaphore", "post", name).finish() == (0, [])
    assert target.finish() == (0, ["ok"])
