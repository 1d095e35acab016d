"""A program has the same results, errno, cancellation and exit status with the library."""

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
def test_a_self_checking_program_passes_without_the_library(
    name: str, start_unprepared: StartTarget
) -> None:
    assert start_unprepared(name).finish() == (0, ["ok"])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", CHECKS_ITSELF)
def test_a_self_checking_program_passes_at_each_level(
    name: str, level: str, start_target: StartTarget
) -> None:
    assert start_target(name, level=level).finish() == (0, ["ok"])


@pytest.mark.parametrize("level", LEVELS)
def test_odd_arguments_have_the_same_results(
    level: str, start_unprepared: StartTarget, start_target: StartTarget
) -> None:
    """A null pointer, a time or a clock that is none, a thread that cannot be joined."""
    flags = ("-Wno-nonnull",)
    status, expected = start_unprepared("odd_arguments", flags=flags).finish()
    assert status == 0
    assert len(expected) > 50
    assert start_target("odd_arguments", level=level, flags=flags).finish() == (0, expected)


@pytest.mark.parametrize("level", LEVELS)
def test_recursive_and_checked_mutexes_work_at_each_level(
    level: str, start_target: StartTarget
) -> None:
    target = start_target("recursive_mutex_still_held", level=level)
    for state in ("held", "free"):
        target.expect(state)
        target.go_on()
    assert target.finish() == (0, ["ok"])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "name", ["failed_trylocks", "timed_waits_give_up", "locks_before_and_after_main"]
)
def test_a_program_that_measures_itself_ends_well_at_each_level(
    name: str, level: str, start_target: StartTarget
) -> None:
    target = start_target(name, level=level)
    assert target.truth()
    target.go_on()
    assert target.finish() == (0, ["ok"])


@pytest.mark.parametrize("name", ["counts_mutex_calls", "counts_mutex_calls_but_trylock"])
def test_another_interposer_behind_the_library_sees_each_call(
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


@pytest.mark.parametrize("how", ["preloaded", "linked"])
def test_another_interposer_behind_the_library_sees_each_call_of_conditions(
    how: str, compiler: Compiler
) -> None:
    """Its functions have no version, and a program that is linked with it asks for none."""
    behind = compiler.program("counts_condition_calls", "-shared", "-fPIC")
    library = preload_environment(None)["LD_PRELOAD"]
    linked = compiler.program("passes_turns", str(behind))
    program = linked if how == "linked" else compiler.program("passes_turns")
    preload = library if how == "linked" else f"{library}:{behind}"
    with Target([program], {"LD_PRELOAD": preload}) as target:
        calls = target.truth()
        status, lines = target.finish()
    assert (status, lines[0]) == (0, "ok")
    assert json.loads(lines[1]) == calls


def test_the_library_is_silent_under_the_thread_sanitizer(compiler: Compiler) -> None:
    """The sanitizer's interceptors in the program answer before the sanitizer is ready."""
    program = compiler.program("ring_of_three", "-fsanitize=thread", "-static-libtsan")
    with Target([program], preload_environment(None)) as target:
        target.expect("ready")
        target.go_on()
        assert target.line()
