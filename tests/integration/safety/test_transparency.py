"""A program does not notice the library: results, errno, cancellation, exit status."""

from __future__ import annotations

import json

import pytest
from support.targets import Compiler, StartTarget, Target

from locktop.collector.sources.launch import preload_environment

CHECKS_ITSELF = [
    "errno_and_results",
    "cancellation_points",
    "robust_owner_dies_twice",
    "clone_by_raw_syscall",
    "fork_in_signal_handler",
    "mutex_words",
]
LEVELS = ["dormant", "counting", "contended"]


@pytest.mark.parametrize("name", CHECKS_ITSELF)
def test_the_check_holds_without_the_library(name: str, start_unprepared: StartTarget) -> None:
    assert start_unprepared(name).finish() == (0, ["ok"])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", CHECKS_ITSELF)
def test_the_check_holds_with_the_library(name: str, level: str, start_target: StartTarget) -> None:
    assert start_target(name, level=level).finish() == (0, ["ok"])


@pytest.mark.parametrize("level", LEVELS)
def test_recursive_and_checked_mutexes(level: str, start_target: StartTarget) -> None:
    target = start_target("recursive_mutex_still_held", level=level)
    for state in ("held", "free"):
        target.expect(state)
        target.go_on()
    assert target.finish() == (0, ["ok"])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "name", ["failed_trylocks", "timed_waits_give_up", "locks_before_and_after_main"]
)
def test_results_of_those_that_say_figures(
    name: str, level: str, start_target: StartTarget
) -> None:
    target = start_target(name, level=level)
    assert target.truth()
    target.go_on()
    assert target.finish() == (0, ["ok"])


@pytest.mark.parametrize("name", ["counts_mutex_calls", "counts_mutex_calls_but_trylock"])
def test_who_stands_behind_the_library_sees_each_call(
    name: str, compiler: Compiler, start_target: StartTarget
) -> None:
    behind = compiler.program(name, "-shared", "-fPIC")
    library = preload_environment(None)["LD_PRELOAD"]
    target = start_target(
        "locks_before_and_after_main", environment={"LD_PRELOAD": f"{library}:{behind}"}
    )
    acquisitions = target.truth()["acquisitions"]
    target.go_on()
    status, lines = target.finish()
    assert status == 0
    seen = json.loads(lines[-1])
    assert seen["taken"] == seen["released"] > acquisitions


def test_under_the_thread_sanitizer(compiler: Compiler) -> None:
    """Linked into the program, its interceptors answer before it is ready; we keep still."""
    program = compiler.program("ring_of_three", "-fsanitize=thread", "-static-libtsan")
    with Target([program], preload_environment(None)) as target:
        target.expect("ready")
        target.go_on()
        assert target.line()
