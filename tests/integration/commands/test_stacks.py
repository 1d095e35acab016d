"""`locktop stacks` shows each thread with the stack that gdb, or Python itself, has for it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support import gdb, tool
from support.pythons import PYTHON
from support.targets import StartTarget, Target, source_of
from support.watched import Need

from locktop.collector.sources.launch import preload_environment

both_ways = pytest.mark.parametrize("prepared", [True, False], ids=["prepared", "unprepared"])
#: Functions whose frame has a size that only the running program knows, or that align their frame.
#: A stack may end there (test_native_stacks.py).
MAY_END = {"takes_some", "sized", "stale", "aligned", "many_arguments", "chooses"}
#: The end of an incomplete stack.
CUT = "(further callers"


def read_stacks(*arguments: str | int) -> dict[str, Any]:
    """Return ``locktop stacks --format json``."""
    done = tool.run("stacks", *arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def own_functions(document: Mapping[str, Any], program: str) -> dict[int, list[str]]:
    """Return by tid the functions of the program itself, and the marker of a cut stack."""
    return {
        thread["tid"]: [
            frame["function"]
            for frame in group["stack"] or ()
            if frame["module"] == program or (frame["function"] or "").startswith(CUT)
        ]
        for group in document["groups"]
        for thread in group["threads"]
    }


@both_ways
@pytest.mark.parametrize(
    ("name", "says"),
    [("asleep_in_stack_shapes", ""), ("hot_index_lock", "ready"), ("accounts_deadlock", "ready")],
)
def test_the_functions_of_each_thread_are_those_of_gdb(
    name: str,
    says: str,
    prepared: bool,
    start_target: StartTarget,
    start_unprepared: StartTarget,
    need: Need,
    tmp_path: Path,
) -> None:
    target = (start_target if prepared else start_unprepared)(name)
    if says:
        target.expect(says)
    else:
        target.truth()
    program = Path(f"/proc/{target.pid}/exe").readlink().name
    document = read_stacks("-p", target.pid)
    ours = own_functions(document, program)
    truth = gdb.own_functions(need("gdb"), target.pid, tmp_path)
    assert ours.keys() == truth.keys()
    assert document["unknown"] == 0
    for tid, functions in ours.items():
        if functions and functions[-1].startswith(CUT):
            assert MAY_END & set(truth[tid])
            functions = functions[:-1]
            assert functions == truth[tid][: len(functions)]
        else:
            assert functions == truth[tid]


def test_threads_that_wait_alike_are_one_group_with_their_holder(
    start_target: StartTarget,
) -> None:
    target = start_target("hot_index_lock")
    target.expect("ready")
    document = read_stacks("-p", target.pid)
    first = document["groups"][0]
    assert (first["state"], first["name"], len(first["threads"])) == ("waiting", "request", 24)
    (holder,) = {tid for thread in first["threads"] for tid in thread["waiting_for"]["holders"]}
    assert {thread["waiting_for"]["lock"] for thread in first["threads"]} == {"g_index_lock"}
    (does,) = first["does"]
    assert f"held by thread {holder} (indexer)" in does
    assert "taken at rebuild_index" in does
    page = tool.run("stacks", "-p", target.pid).stdout
    assert "24 threads, waiting: request" in page
    assert page.count("      serve_request at ") == 1


@both_ways
def test_python_functions_are_those_that_python_knows(prepared: bool) -> None:
    command = [PYTHON, str(source_of("python_known_stacks"))]
    with Target(command, preload_environment(None) if prepared else None) as target:
        target.expect("ready")
        document = read_stacks("-p", target.pid)
        target.go_on()
        truth = target.truth()
    assert {
        str(thread["tid"]): [
            [frame["function"], Path(frame["file"]).name, frame["line"]]
            for frame in group["stack"]
            if frame["module"] == "python"
        ]
        for group in document["groups"]
        for thread in group["threads"]
        if str(thread["tid"]) in truth
    } == truth


@both_ways
def test_threads_of_python_that_never_sleep_have_their_functions(prepared: bool) -> None:
    command = [PYTHON, str(source_of("python_threads_burn"))]
    with Target(command, preload_environment(None) if prepared else None) as target:
        target.expect("ready")
        document = read_stacks("-p", target.pid)
    functions = [
        [frame["function"] for frame in group["stack"] or () if frame["module"] == "python"]
        for group in document["groups"]
        for thread in group["threads"]
        if "burns" in thread["name"]
    ]
    assert functions == [["burns", "run", "_bootstrap_inner", "_bootstrap"]] * 3


@pytest.mark.parametrize(
    ("name", "way", "needed"),
    [("cxx_locks_cross", "together", "g++"), ("rust_locks_cross", "pthread", "rustc")],
)
@both_ways
def test_other_languages_have_their_functions(
    name: str,
    way: str,
    needed: str,
    prepared: bool,
    start_target: StartTarget,
    start_unprepared: StartTarget,
    need: Need,
) -> None:
    need(needed)
    target = (start_target if prepared else start_unprepared)(name, way)
    truth = target.truth()
    document = read_stacks("-p", target.pid)
    functions = own_functions(document, name)
    tids = truth["tids"] if "tids" in truth else [truth["first"], truth["second"]]
    for tid in tids:
        assert any(is_own(name, function) for function in functions[tid]), functions


def is_own(name: str, function: str) -> bool:
    """Return whether a function is written in the target."""
    return f"{name}::" in function or "crosses" in function or "together" in function


def test_a_file_has_the_stacks_of_its_scan(start_target: StartTarget, tmp_path: Path) -> None:
    target = start_target("hot_index_lock")
    target.expect("ready")
    snapshot, recording = str(tmp_path / "one.json"), str(tmp_path / "one.lkt")
    assert tool.run("snapshot", "-p", target.pid, "-o", snapshot).returncode == 0
    assert tool.run("record", "-p", target.pid, "-d", "1", "-o", recording).returncode == 0
    first = read_stacks(snapshot)["groups"][0]
    assert (first["name"], len(first["threads"])) == ("request", 24)
    assert first["stack"][0]["function"] == "serve_request"
    page = tool.run("stacks", recording).stdout
    assert "24 threads, waiting: request" in page
    assert "rebuild_index at hot_index_lock.c:" in page


def test_a_stopped_process_says_so(start_unprepared: StartTarget) -> None:
    target = start_unprepared("hot_index_lock")
    target.expect("ready")
    os.kill(target.pid, signal.SIGSTOP)
    page = tool.run("stacks", "-p", target.pid).stdout
    os.kill(target.pid, signal.SIGCONT)
    assert "a signal or a debugger has stopped it" in page


@pytest.mark.parametrize(
    "arguments", [(), ("-p", "1", "file"), ("no-such-file",), ("--at", "-1s", "-p", "1")]
)
def test_wrong_use_is_one_line(arguments: tuple[str, ...]) -> None:
    done = tool.run("stacks", *arguments)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert not done.stdout
