"""Every command that scans says in one line which waits the library cannot observe."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support import tool
from support.screen import Screen
from support.targets import PATIENCE_S, Compiler, StartTarget, Target, remove_file_of, start_time

from locktop.collector.sources.attach import attach
from locktop.collector.sources.launch import preload_environment

Need = Callable[[str], Path]
NOBODY = 65534


def messages_about(pid: int, program: Path | None = None) -> list[str]:
    """Return the lines of `snapshot` and `list` about a process without the library.

    With a ``program``, also return the line of `run`, which refuses to start it.
    """
    document = tool.snapshot(pid)
    assert document["source"] == "proc"
    lines = [document["notes"][0]]
    if program is not None:
        done = tool.run_alone("run", "--", str(program))
        assert (done.returncode, done.stdout) == (2, ""), done
        lines += done.stderr.splitlines()
    listed = tool.run("list", "--all").stdout.splitlines()
    lines += [line for line in listed if line.split()[0] == str(pid)]
    assert len(lines) == (3 if program is not None else 2), lines
    return lines


@pytest.mark.parametrize(("level", "flag"), [(None, "-static"), ("all", "-static-pie")])
def test_a_static_program_is_named_as_such(
    level: str | None, flag: str, compiler: Compiler
) -> None:
    program = compiler.program("nothing_to_show", flag)
    with Target([program], preload_environment(level)) as target:
        target.expect("ready")
        assert all("statically linked" in line for line in messages_about(target.pid, program))
        assert target.finish() == (0, [])


@pytest.mark.big
def test_a_go_program_is_static_and_its_idle_threads_are_known(need: Need, tmp_path: Path) -> None:
    source = tmp_path / "waits.go"
    source.write_text("""\
package main

import "os"

func main() { println("ready"); os.Stdin.Read(make([]byte, 1)) }
""")
    environment = {**os.environ, "GOCACHE": str(tmp_path / "cache"), "CGO_ENABLED": "0"}
    build = [str(need("go")), "build", "-o", "waits", source.name]
    subprocess.run(build, cwd=tmp_path, env=environment, check=True)
    with Target([tmp_path / "waits"], preload_environment()) as target:
        lines = messages_about(target.pid, tmp_path / "waits")
        assert all("statically linked" in line for line in lines)
        seen = tool.scan_until(target.pid, lambda seen: bool(seen["locks"]), "idle threads of Go")
        assert {lock["type"] for lock in seen["locks"]} == {"Go runtime note"}
        assert all(lock["idle"] for lock in seen["locks"])
        assert target.finish()[0] == 0


def test_a_program_of_musl_is_named_as_such(need: Need, compiler: Compiler, tmp_path: Path) -> None:
    source = tmp_path / "waits.c"
    source.write_text("#include <stdio.h>\nint main(void) { puts(\"ready\"); fflush(stdout); "
                      "return getchar() == 'x'; }\n")  # fmt: skip
    subprocess.run([str(need("musl-gcc")), "-o", "waits", source.name], cwd=tmp_path, check=True)
    with Target([tmp_path / "waits"]) as target:  # musl's loader refuses the library
        target.expect("ready")
        assert all("musl" in line for line in messages_about(target.pid, tmp_path / "waits"))
        assert target.finish() == (0, [])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a program another user's")
def test_a_setuid_program_is_named_as_such(compiler: Compiler, tmp_path: Path) -> None:
    program = Path(shutil.copy(compiler.program("nothing_to_show"), tmp_path))
    os.chown(program, NOBODY, NOBODY)
    program.chmod(0o4755)
    for directory in (tmp_path, *tmp_path.parents[:2]):
        directory.chmod(0o755)
    with Target([program], preload_environment()) as target:
        target.expect("ready")
        assert all("setuid" in line for line in messages_about(target.pid, program))
        assert target.finish() == (0, [])


PASSIVE = {"OMP_WAIT_POLICY": "passive"}


@pytest.fixture(params=["barrier", "critical", "lock"])
def openmp(request: pytest.FixtureRequest, compiler: Compiler) -> Any:
    program = compiler.program("openmp_team_waits", "-fopenmp")
    with Target([program, request.param], {**preload_environment(), **PASSIVE}) as target:
        started = start_time(target.pid)
        yield target
    remove_file_of(target.pid, started)


#: By argument of the program: the function that waits, and the type, rule and state of its wait.
OPENMP = {
    "barrier": ("meet", "OpenMP barrier", "openmp-barrier", "idle"),
    "critical": ("take_critical", "OpenMP lock", "openmp-lock", "waiting"),
    "lock": ("take_lock", "OpenMP lock", "openmp-lock", "waiting"),
}


def test_waits_of_openmp_are_reported_as_unobserved(
    openmp: Target, request: pytest.FixtureRequest
) -> None:
    caller, type_, why, state = OPENMP[request.node.callspec.params["openmp"]]
    main = openmp.truth()["main"]

    def both_wait(document: dict[str, Any]) -> bool:
        # On a busy machine a scan may have no time to read both stacks.
        return [bool(wait["stack"]) for wait in document["unseen"]] == [True, True]

    document = tool.scan_until(openmp.pid, both_wait, "two waiting threads of OpenMP")
    states = {thread["tid"]: thread["state"] for thread in document["threads"]}
    assert len(states) == 3
    assert main not in document["unseen_waiters"], "the main thread reads"
    assert {states[tid] for tid in document["unseen_waiters"]} == {state}
    waits = document["unseen"]
    assert [wait["tid"] for wait in waits] == document["unseen_waiters"]
    assert len({wait["address"] for wait in waits}) == 1, "both threads wait for one futex"
    for wait in waits:
        assert (wait["type"], wait["why"], wait["idle"]) == (type_, why, state == "idle")
        assert caller in tool.functions(document, wait["stack"])
    assert states[main] == "idle"
    assert any("do not pass through the library" in note for note in document["notes"])
    page = tool.run("snapshot", "-p", openmp.pid, "--format", "text").stdout
    assert ("wait for something unknown" in page) == (state == "idle")
    # Only the lock is a variable of the program, so only the lock has a name.
    names = {wait["name"] for wait in waits}
    assert names == ({"lock"} if caller == "take_lock" else {""})
    # A contended wait is in the list of waiting threads.
    wanted = f"{type_}, futex {waits[0]['address']} (" if state == "idle" else "THREADS WAITING NOW"
    assert wanted in " ".join(page.split())
    assert ("THREADS IN UNOBSERVED WAITS" in page) == (state == "idle")
    assert "do not pass through the library" in page
    checked = tool.run("check", "-p", openmp.pid)
    assert checked.returncode == (0 if state == "idle" else 3), "after 10 s"
    # Each wait counts once: that for a lock of OpenMP among the locks.
    for_lock = "2 waiting for a lock (2 for one whose holder is only probable)"
    unknown = "2 waiting for something unknown"
    words = " ".join(checked.stdout.split())
    assert (unknown in words, for_lock in words) == (state == "idle", state != "idle"), words
    openmp.go_on()
    openmp.expect("done")
    assert openmp.finish() == (0, [])


@pytest.mark.parametrize("openmp", ["critical"], indirect=True)
def test_the_screen_shows_the_unobserved_waits(openmp: Target, need: Need) -> None:
    openmp.line()
    with Screen(need("tmux"), "-p", openmp.pid) as screen:
        screen.until(lambda text: "2 wait" in text and "OpenMP lock" in text, "the waits")
        screen.until(lambda text: "take_critical" in text, "the function, which comes later")


def test_the_memory_shows_the_locks_of_waits_at_level_dormant(start_target: StartTarget) -> None:
    """The library observes nothing, and a note says so; mutexes name their owners all the same."""
    target = start_target("ring_of_three", level="dormant")
    target.expect("ready")
    with closing(attach(target.pid)) as source:
        source.set_level("dormant")
        target.go_on()
        tids = set(target.truth().values())
        deadline = time.monotonic() + PATIENCE_S
        while not (seen := source.scan(resolve=True)).deadlocks:
            assert time.monotonic() < deadline
        assert (len(seen.notes), "is dormant" in seen.notes[0]) == (1, True), seen.notes
        (found,) = seen.deadlocks
        assert found.certain
        assert {edge.tid for edge in found.cycle} == tids
        names = {lock.name for lock in seen.locks if lock.id in seen.deadlocked}
        assert names == {"g_alpha_lock", "g_beta_lock", "g_gamma_lock"}
        assert all(edge.stack for edge in found.cycle)
        assert not tids.intersection(seen.unobserved_waiters)


def test_an_observed_wait_is_never_reported_as_unobserved(start_target: StartTarget) -> None:
    """Waits begin and end while the scan reads the state of the threads from the kernel."""
    target = start_target("rolling_contention")
    target.expect("ready")
    source = attach(target.pid)
    try:
        assert {source.scan().unobserved_waiters for _ in range(15)} == {()}
    finally:
        source.close()
