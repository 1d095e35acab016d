"""Other libraries in the process: earlier and later ones, plugins, sanitizers, allocators."""

from __future__ import annotations

import ctypes.util
from pathlib import Path

import pytest
from support import requirements, tool
from support.targets import Compiler, StartTarget, Target

from locktop.collector.sources.launch import preload_environment

LEVELS = [None, "dormant", "contended", "all"]

#: Debian's packages of these libraries.
PACKAGES = {"jemalloc": "libjemalloc2", "tcmalloc_minimal": "libtcmalloc-minimal4"}


def environment(level: str | None) -> dict[str, str]:
    return preload_environment(level) if level else {}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("binding", ["lazy", "now"])
def test_locks_before_the_first_constructor_work(
    level: str | None, binding: str, compiler: Compiler
) -> None:
    first = compiler.program("library_constructed_first", "-shared", "-fPIC", "-Wl,-z,initfirst")
    program = compiler.program("locks_before_constructors", str(first), f"-Wl,-z,{binding}")
    with Target([program], environment(level)) as target:
        assert target.finish() == (0, ["ok"])


@pytest.mark.parametrize("level", LEVELS)
def test_a_lookup_that_locks_works(
    level: str | None, compiler: Compiler, start_target: StartTarget
) -> None:
    """dlsym() of glibc before 2.34 calls pthread_once(), which is a hook."""
    theirs = compiler.program("dlsym_that_locks", "-shared", "-fPIC")
    preload = f"{preload_environment()['LD_PRELOAD']}:{theirs}"
    running = start_target(
        "threads_trade_memory", environment={**environment(level), "LD_PRELOAD": preload}
    )
    assert running.finish() == (0, ["ok"])


def allocator(name: str) -> str:
    """Return the library's file name as the loader wants it."""
    found = ctypes.util.find_library(name)
    if found is None:
        requirements.missing(f"lib{name}", PACKAGES[name])
    return found


@pytest.mark.parametrize("name", PACKAGES)
@pytest.mark.parametrize("target", ["threads_trade_memory", "thread_local_destructors"])
def test_another_allocator_works_in_any_load_order(
    name: str, target: str, start_target: StartTarget
) -> None:
    ours, theirs = preload_environment()["LD_PRELOAD"], allocator(name)
    for preload in (theirs, f"{ours}:{theirs}", f"{theirs}:{ours}"):
        running = start_target(target, environment={"LD_PRELOAD": preload})
        assert running.finish() == (0, ["ok"]), preload


@pytest.mark.parametrize("level", [None, "contended", "all"])
def test_an_unwinder_that_locks_and_allocates_works(
    level: str | None, start_target: StartTarget
) -> None:
    running = start_target("unwinder_over_locking_allocator", level=level)
    assert running.finish() == (0, ["ok"])


@pytest.mark.parametrize("level", ["contended", "blocks", "all"])
def test_an_unwinder_does_not_wait_for_the_lock_that_its_own_thread_got(
    level: str, start_target: StartTarget
) -> None:
    """Threads get the allocator's lock after brief waits, whose stacks need the allocator."""
    running = start_target("unwinder_over_locking_allocator", "threads", level=level)
    assert running.finish() == (0, ["ok"])


def test_an_allocator_that_locks_twice_under_the_unwinder_works(
    compiler: Compiler, start_target: StartTarget
) -> None:
    allocator = compiler.program(
        "unwinder_over_locking_allocator", "-shared", "-fPIC", "-DALLOCATOR"
    )
    running = start_target("unwinder_over_locking_allocator", flags=("-DPROGRAM", str(allocator)))
    assert running.finish() == (0, ["ok"])


#: No program that forks beside threads: there AddressSanitizer's own locks hang in the child.
SANITIZED = ["handler_posts_semaphores", "thread_exit_destructors"]


@pytest.mark.parametrize("level", [None, "all"])
@pytest.mark.parametrize("name", SANITIZED)
def test_the_library_works_under_sanitizers(
    name: str, level: str | None, compiler: Compiler
) -> None:
    program = compiler.program(name, "-fsanitize=address,undefined", "-static-libasan")
    # The search for leaks traces the own process, which a sandbox around the tests may forbid.
    variables = {"ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1"}
    with Target([program], {**environment(level), **variables}) as target:
        status, lines = target.finish()
        assert (status, lines[-1]) == (0, "ok"), lines


def plugin(compiler: Compiler, *flags: str) -> Path:
    return compiler.program("plugin_that_locks", "-shared", "-fPIC", *flags)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("how", ["reload", "waiting", "churn"])
def test_plugins_may_be_opened_and_closed(how: str, level: str | None, compiler: Compiler) -> None:
    program = compiler.program("opens_and_closes_plugins", "-rdynamic")
    first = plugin(compiler, "-DWAITS" if how == "waiting" else "-DWORKS=first_plugin_works")
    second = plugin(compiler, "-DWORKS=second_plugin_works")
    with Target([program, how, first, second], environment(level)) as target:
        status, lines = target.finish()
        assert (status, lines[-1]) == (0, "ok"), lines


def test_stacks_of_a_closed_plugin_are_not_those_of_the_next_one(compiler: Compiler) -> None:
    """The loader puts the second plugin at the address of the first one."""
    first = plugin(compiler, "-DWORKS=first_plugin_works")
    second = plugin(compiler, "-DWORKS=second_plugin_works")
    program = compiler.program("opens_and_closes_plugins", "-rdynamic")
    with Target([program, "reload", first, second], environment("contended")) as target:
        truth = target.truth()
        target.expect("ok")
        document = tool.snapshot(target.pid)
        waits = {
            tool.functions(document, one["stack"])[0]: one["count"]
            for one in tool.lock_named(document, "g_in_plugin")["wait_stacks"]
        }
        assert waits == {"": truth["first"], "second_plugin_works": truth["second"]}
        target.finish()
