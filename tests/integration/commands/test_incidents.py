"""Programs that hang as real services did: each `locktop check` has the same right answer.

The first comment of each program in tests/targets/hangs says what happens. The statuses must never
change from one check to the next: `make incidents` checks each program ten times.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from support import tool
from support.targets import PATIENCE_S, Compiler, Target, source_of

from locktop.collector.sources.launch import preload_environment

FEW = 2
CHECKS = int(os.environ.get("LOCKTOP_INCIDENT_CHECKS", FEW))


@dataclass(frozen=True)
class Incident:
    """The answer to one program."""

    name: str
    status: int
    texts: tuple[str, ...]  # patterns of the answer
    flags: tuple[str, ...] = ()


INCIDENTS = [
    Incident(
        "python_gil_and_state_lock", 1, ("all 3 threads", "the GIL of Python in log_line",
        "g_state_lock in state_add"),
    ),
    Incident(
        "loader_lock_and_registry", 1, ("net-worker", "g_registry_lock", "register_tag",
        "match_tag", "loader's lock|_rtld_global"), ("-rdynamic",),
    ),
    Incident(
        "rust_rwlock_read_again", 1, ("poller", "channel_updated", "syncer", "apply_block"), ("-O",)
    ),
    Incident("condition_waiter_killed", 3, ("pthread_cond_broadcast", "publish")),
    Incident("pool_waits_for_itself", 1, ("all 5 threads", "4 for std::future", "count_rows")),
    Incident("stdout_lock_before_full_pipe", 3, ("stdout", "log_event", r"write\(1 -> pipe")),
    Incident("atomic_without_notify", 1, ("3 for g_tickets", "take_ticket", "3 already")),
    Incident("semaphore_units_leaked", 1, ("g_slots", "borrow_connection")),
    Incident("openmp_after_fork", 1, ("the only thread", "OpenMP"), ("-fopenmp",)),
    Incident("python_pipe_under_lock", 3, ("flush_records", "write\\(")),
    Incident("rust_two_mutexes", 0, (), ("-O",)),
    Incident("shared_mutex_owner_killed", 1, ("open_session", "which is gone")),
    Incident("barrier_left_by_exception", 1, ("g_step_barrier", "reduce_columns")),
]  # fmt: skip


def started(incident: Incident, is_prepared: bool, compiler: Compiler) -> Target:
    environment = preload_environment(None) if is_prepared else None
    if source_of(incident.name).suffix == ".py":
        python = [sys.executable, str(source_of(incident.name))]
        if incident.name == "python_gil_and_state_lock":
            python.append(str(compiler.program("gil_and_state_lock", "-shared", "-fPIC")))
        return Target(python, environment)
    command = [str(compiler.program(incident.name, *incident.flags))]
    if incident.name == "loader_lock_and_registry":
        command.append(str(compiler.program("registry_plugin", "-shared", "-fPIC")))
    return Target(command, environment)


@pytest.mark.parametrize("is_prepared", [True, False], ids=["prepared", "unprepared"])
@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda one: one.name)
def test_the_answer_is_right_each_time(
    incident: Incident, is_prepared: bool, compiler: Compiler
) -> None:
    with started(incident, is_prepared, compiler) as target, ExitStack() as after:
        pid = target.pid
        if incident.name == "openmp_after_fork":
            pid = int(target.line())
            after.callback(os.kill, pid, signal.SIGKILL)
        else:
            target.expect("ready")
        deadline = time.monotonic() + PATIENCE_S
        done = tool.run("check", "-p", pid)
        while done.returncode != incident.status and time.monotonic() < deadline:
            done = tool.run("check", "-p", pid)  # the program may not hang yet
        # Without the library each check of a doubtful wait takes 10 s.
        count = 1 if incident.status == 3 and CHECKS == FEW else CHECKS
        again = [tool.run("check", "-p", pid) for _ in range(count - 1)]
        assert [one.returncode for one in (done, *again)] == [incident.status] * count, done.stdout
        last = [done, *again][-1].stdout
        missing = [text for text in incident.texts if not re.search(text, last)]
        assert not missing, last


@pytest.mark.parametrize("is_prepared", [True, False], ids=["prepared", "unprepared"])
def test_two_mutexes_of_rust_have_two_names(is_prepared: bool, compiler: Compiler) -> None:
    incident = next(one for one in INCIDENTS if one.name == "rust_two_mutexes")
    with started(incident, is_prepared, compiler) as target:
        target.expect("ready")
        deadline = time.monotonic() + PATIENCE_S
        wanted = {"charge_account", "read_config"}
        while True:
            done = tool.run("snapshot", "-p", target.pid, "-d", "1")
            names = [lock["name"] for lock in json.loads(done.stdout)["locks"]]
            found = {one for one in wanted if any(re.search(rf"\b{one}\b", n) for n in names)}
            if found == wanted:
                break
            assert time.monotonic() < deadline, names
