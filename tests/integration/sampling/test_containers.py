"""Processes in other pid, mount, user and time namespaces, and with another root directory."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from support import tool
from support.containers import contained
from support.pythons import version
from support.rights import as_nobody
from support.targets import PATIENCE_S, Compiler, StartTarget, Target

from locktop.collector.linux import procfs
from locktop.collector.model import ActivityState, Snapshot
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.collector.sources.launch import preload_environment
from locktop.collector.symbols.python.frame_reader import PythonReader

#: The lock that each thread of `ring_of_three` wants.
WANTED = {"alice": "g_beta_lock", "bob": "g_gamma_lock", "carol": "g_alpha_lock"}
SORTS = ("root", "user", "pid", "chroot")
Need = Callable[..., Path]


@pytest.fixture(autouse=True)
def namespaces() -> None:
    """Skip the tests if the machine allows no namespaces."""
    if os.geteuid() != 0:
        pytest.skip("only root may make these namespaces")
    command = ["unshare", "--map-root-user", "--pid", "--fork", "--mount"]
    mount = ["mount", "-t", "tmpfs", "x", "/mnt"]
    tried = subprocess.run([*command, *mount], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"no namespaces may be made here: {tried.stderr.strip()}")


def until(source: Source, reached: Callable[[Snapshot], bool]) -> Snapshot:
    deadline = time.monotonic() + PATIENCE_S
    while not reached(seen := source.scan(resolve=True)):
        assert time.monotonic() < deadline
    return seen


def crossed(target: Target) -> dict[str, int]:
    """Let the threads of `ring_of_three` deadlock; return their ids by name."""
    target.expect("ready")
    target.go_on()
    return target.truth()


def check_ring(seen: Snapshot, tids: dict[str, int], pid: int) -> None:
    """Check the deadlock of `ring_of_three`, with the thread ids of the process's own namespace."""
    (found,) = seen.deadlocks
    assert found.certain
    assert {edge.tid for edge in found.cycle} == set(tids.values())
    names = {lock.id: lock.name for lock in seen.locks}
    waits = {thread.tid: thread.waiting_for for thread in seen.threads}
    for name, wanted in WANTED.items():
        wait = waits[tids[name]]
        assert wait is not None
        assert names[wait.lock] == wanted
        functions = [frame.function for frame in seen.stacks[wait.stack]]
        assert functions[:2] == [f"{name}_wants_second", f"{name}_loop"]
        assert len(functions) >= 4, "the stack reaches the start of the thread in libc"
    (program,) = seen.process.cmdline
    assert (seen.process.pid, Path(program).name) == (pid, "ring_of_three")
    other_ids = pid not in waits
    assert any("thread ids are those of" in note for note in seen.notes) == other_ids


@pytest.mark.parametrize("preloaded", [True, False])
@pytest.mark.parametrize("sort", SORTS)
def test_a_deadlock_in_a_container_is_found(sort: str, preloaded: bool, compiler: Compiler) -> None:
    with contained(compiler, sort, "ring_of_three", preloaded=preloaded) as (target, pid):
        tids = crossed(target)
        with closing(attach(pid)) as source:
            seen = until(source, lambda seen: bool(seen.deadlocks))
        check_ring(seen, tids, pid)
        assert seen.source == ("preload" if preloaded else "proc")
        if sort == "root":
            done = tool.run("check", "-p", pid)
            assert (done.returncode, done.stderr) == (1, "")
            assert "g_beta_lock" in done.stdout


@pytest.mark.parametrize("preloaded", [True, False])
def test_a_user_may_scan_a_process_in_the_users_own_container(
    preloaded: bool, compiler: Compiler
) -> None:
    with contained(compiler, "user", "ring_of_three", preloaded=preloaded) as (target, pid):
        tids = crossed(target)
        deadlocked(pid)  # imports the modules, which the user nobody may not read
        seen = as_nobody(partial(deadlocked, pid))
        check_ring(seen, tids, pid)
        assert not any("unwound stacks" in note for note in seen.notes)


def deadlocked(pid: int) -> Snapshot:
    with closing(attach(pid)) as source:
        return until(source, lambda seen: bool(seen.deadlocks))


def test_a_container_without_shared_memory_is_sampled(compiler: Compiler) -> None:
    with contained(compiler, "root", "ring_of_three", shm=False) as (target, pid):
        tids = crossed(target)
        seen = deadlocked(pid)
        check_ring(seen, tids, pid)
        assert seen.source == "proc"
        assert "could not start: cannot make /dev/shm/" in seen.notes[0]
        assert "set LOCKTOP_DIR to a directory" in seen.notes[0]


@pytest.mark.parametrize("preloaded", [True, False])
def test_the_activity_of_a_holder_in_a_container_is_known(
    preloaded: bool, compiler: Compiler
) -> None:
    way = "writes_a_file"
    with contained(compiler, "root", "holder_activities", way, preloaded=preloaded) as (
        target,
        pid,
    ):
        about_to = target.line()
        target.expect("ready")
        with closing(attach(pid)) as source:
            seen = until(source, lambda seen: any(lock.holder_activity for lock in seen.locks))
        (now,) = (lock.holder_activity for lock in seen.locks if lock.holder_activity)
        assert (now.doing, now.what) == (ActivityState.BLOCKED, about_to)
        functions = [frame.function for frame in seen.stacks[now.stack]]
        assert functions[:2] == [way, "hold"]


@pytest.mark.parametrize("preloaded", [True, False])
def test_a_tool_inside_of_the_container_finds_the_deadlock(
    preloaded: bool, compiler: Compiler, need: Need
) -> None:
    inside = [str(need("nsenter", "util-linux")), "--pid", "--mount", "--target"]
    with contained(compiler, "pid", "ring_of_three", preloaded=preloaded) as (target, pid):
        crossed(target)
        done = tool.run_alone("check", "-p", 1, prefix=[*inside, str(pid), "--"])
        assert done.returncode == 1, done.stderr
        assert "ring_of_three 1 wait for each other" in done.stdout
        assert "g_beta_lock" in done.stdout


def test_a_tool_in_a_pid_namespace_refuses_the_proc_of_another_one(
    start_unprepared: StartTarget,
) -> None:
    target = start_unprepared("ring_of_three")
    crossed(target)
    for command in (["check", "-p", target.pid], ["list"]):
        done = tool.run_alone(*command, prefix=["unshare", "--pid", "--fork"])
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert "another pid namespace" in line


@pytest.mark.parametrize("preloaded", [True, False])
def test_a_message_names_the_system_call_that_a_filter_forbids(
    preloaded: bool, start_unprepared: StartTarget, start_target: StartTarget, compiler: Compiler
) -> None:
    target = (start_target if preloaded else start_unprepared)("ring_of_three")
    crossed(target)
    done = tool.run_alone(
        "snapshot", "-p", target.pid, prefix=[str(compiler.program("forbid_process_vm_readv"))]
    )
    if preloaded:
        (note,) = json.loads(done.stdout)["notes"]
        assert note.startswith("unwound stacks are missing: its memory cannot be read")
    else:
        assert (done.returncode, done.stdout) == (2, "")
        (note,) = done.stderr.splitlines()
    assert "forbids process_vm_readv here: allow that call, or run locktop outside" in note


def test_a_note_names_another_time_namespace(compiler: Compiler) -> None:
    command = ["unshare", "--time", "--boottime", "1000", "--kill-child", "--fork"]
    if (tried := subprocess.run([*command, "true"], capture_output=True, text=True)).returncode:
        pytest.skip(f"no time namespace may be made here: {tried.stderr.strip()}")
    program, preload = compiler.program("ring_of_three"), preload_environment()["LD_PRELOAD"]
    with Target([*command, "env", f"LD_PRELOAD={preload}", program]) as target:
        tids = crossed(target)
        pid = procfs.status(tids["alice"]).process
        seen = deadlocked(pid)
        check_ring(seen, tids, pid)
        assert "it runs in another time namespace" in seen.notes[0]
        target.finish()


def test_a_python_whose_file_is_only_in_the_container_has_functions_or_a_note(
    tmp_path: Path,
) -> None:
    """From CPython 3.13 on, the memory of the process says where the frames are."""
    code = "import sys; print('ready', flush=True); sys.stdin.read()"
    steps = 'mount -t tmpfs x "$1" && cp "$2" "$1/python3" && exec "$1/python3" -c "$3"'
    python = os.path.realpath("/usr/bin/python3")  # this one needs no shared libpython
    if not os.path.exists(python):
        pytest.skip("/usr/bin/python3 is not installed")
    command = ["unshare", "--mount", "sh", "-c", steps, "sh", str(tmp_path), python, code]
    with Target(command, {"PYTHONHOME": "/usr"}) as target:
        target.expect("ready")
        with closing(PythonReader(target.pid)) as reader:
            reader.ask()
            stacks = reader.answer(PATIENCE_S)
    if version(python) < (3, 13):
        assert stacks is None
    if stacks is None:
        assert "in a container, run locktop inside" in reader.note
    else:
        functions = [frame.function for runs in stacks.values() for run in runs for frame in run]
        assert functions == ["<module>"]
