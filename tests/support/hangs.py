"""Programs in tests/targets/hangs that hang as real services did, with the right answers.

The first comment of each program says what happens.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from locktop.collector.sources.launch import preload_environment
from support.targets import Compiler, Target, source_of


@dataclass(frozen=True)
class Hang:
    """The answer to one program."""

    name: str
    status: int
    texts: tuple[str, ...]  # patterns of the answer of `locktop check`
    screen: tuple[str, ...]  # patterns of the first screen at 80x24
    flags: tuple[str, ...] = ()
    never: str = ""  # pattern of what neither the command nor the screen says
    before_glibc: tuple[int, int] | None = None  # the program hangs with older versions alone


HANGS = [
    Hang(
        "python_gil_and_state_lock", 1,
        ("loader -> renderer|renderer -> loader", "held by renderer", "g_state_lock", "log_line"),
        ("DEADLOCK for", "renderer (wants g_state_lock of|waits for g_state_lock, held by) loader",
         "(of|held by) renderer"),
    ),
    Hang(
        "loader_lock_and_registry", 1,
        ("net-worker", "g_registry_lock", "register_tag", "match_tag", "loader's lock|_rtld"),
        ("DEADLOCK for", "wants g_registry_lock of net-worker", "net-worker wants"),
        ("-rdynamic",),
    ),
    Hang(
        "rust_rwlock_read_again", 1, ("poller", "channel_updated", "syncer", "apply_block"),
        ("HANG: all 3 threads", "poller waits for Rust RwLock", "syncer waits for Rust RwLock"),
        ("-O",),
    ),
    Hang(
        "condition_waiter_killed", 3, ("pthread_cond_broadcast", "publish"),
        ("pthread_cond_broadcast in publish",), before_glibc=(2, 41),
    ),
    Hang(
        "pool_waits_for_itself", 1, ("all 5 threads", "4 wait for std::future", "count_rows"),
        ("HANG: all 5 threads", "4 wait for std::future"), never="Find the thread that has it",
    ),
    Hang(
        "stdout_lock_before_full_pipe", 3, ("stdout", "log_event", r"write\(1 -> pipe"),
        # Without debug information the C library's functions name the lock.
        ("POSSIBLE HANG: all 6", "[234] wait for (stdout's FILE|libc's f)", r"write\(1 -> pipe"),
    ),
    Hang(
        "atomic_without_notify", 1, ("3 wait for g_tickets", "take_ticket", "3 already"),
        ("HANG: all 4 threads", "3 wait for g_tickets", "nobody woke it"),
    ),
    Hang(
        "semaphore_units_leaked", 1, ("g_slots", "borrow_connection"),
        ("DEADLOCK for|HANG: all 7", "g_slots", "borrow_connection"),
    ),
    Hang(
        "openmp_after_fork", 1, ("the only thread", "OpenMP"),
        ("HANG: the only thread waits", "for OpenMP"), ("-fopenmp",),
    ),
    Hang(
        "python_pipe_under_lock", 3, ("flush_records", "write\\("),
        ("POSSIBLE HANG: all 3", r"write\(", "flush_records"),
    ),
    Hang("rust_two_mutexes", 0, (), ("charge_account", "rs:15"), ("-O",)),
    Hang(
        "shared_mutex_owner_killed", 1, ("open_session", "which is gone"),
        ("DEADLOCK for", "not given back by", "which is gone"),
    ),
    Hang(
        "barrier_left_by_exception", 1, ("g_step_barrier", "reduce_columns"),
        ("HANG: all 4 threads", "g_step_barrier"),
        # The main thread never comes to the barrier.
        never="has not arrived|DEADLOCK",
    ),
]  # fmt: skip


@contextmanager
def hanging(hang: Hang, is_prepared: bool, compiler: Compiler) -> Iterator[int]:
    """Run a program; yield the id of the process that hangs, or soon will.

    Args:
        hang: The program.
        is_prepared: Whether it runs with the library.
        compiler: Builds the program.
    """
    if hang.before_glibc is not None and glibc() >= hang.before_glibc:
        pytest.skip("the program does not hang with this version of glibc")
    with _started(hang, is_prepared, compiler) as target:
        if hang.name != "openmp_after_fork":
            target.expect("ready")
            yield target.pid
            return
        child = int(target.line())
        try:
            yield child
        finally:
            os.kill(child, signal.SIGKILL)


def glibc() -> tuple[int, int]:
    """Return the version of this machine's C library."""
    name = os.confstr("CS_GNU_LIBC_VERSION") or ""
    major, minor = name.split()[1].split(".")[:2]
    return int(major), int(minor)


def _started(hang: Hang, is_prepared: bool, compiler: Compiler) -> Target:
    environment = preload_environment(None) if is_prepared else None
    if source_of(hang.name).suffix == ".py":
        python = [sys.executable, str(source_of(hang.name))]
        if hang.name == "python_gil_and_state_lock":
            python.append(str(compiler.program("gil_and_state_lock", "-shared", "-fPIC")))
        return Target(python, environment)
    command = [str(compiler.program(hang.name, *hang.flags))]
    if hang.name == "loader_lock_and_registry":
        command.append(str(compiler.program("registry_plugin", "-shared", "-fPIC")))
    return Target(command, environment)
