"""The doctor says what can be seen of a process, why not more, and what helps."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest
from support import tool
from support.targets import StartTarget


def checks(pid: int) -> tuple[int, dict[str, dict[str, Any]], list[str]]:
    """Return the exit status, the checks by name, and the notes."""
    done = tool.run("doctor", "-p", pid, "--format", "json")
    document = json.loads(done.stdout)
    assert document["format"] == "locktop.doctor"
    notes = [one["fact"] for one in document["checks"] if one["name"] == "note"]
    return done.returncode, {one["name"]: one for one in document["checks"]}, notes


def test_a_process_with_the_library_is_watched_exactly(start_target: StartTarget) -> None:
    target = start_target("shares_inside_lock", "sleep")
    target.expect("ready")
    status, found, _ = checks(target.pid)
    assert status in (0, 3)  # libc may lack its names
    assert found["watch"]["sight"] == found["level"]["sight"] == "ok"
    assert found["program"]["sight"] == "ok"
    assert "source lines" in found["program"]["fact"]
    assert found["program"]["remedy"] is None


def test_a_low_level_has_the_command_that_raises_it(start_target: StartTarget) -> None:
    target = start_target("shares_inside_lock", "sleep", level="counting")
    target.expect("ready")
    status, found, _ = checks(target.pid)
    assert status == 3
    assert found["level"]["sight"] == "limited"
    assert found["level"]["remedy"] == f"locktop ctl -p {target.pid} --level contended"


def test_a_process_without_the_library_is_only_sampled(start_unprepared: StartTarget) -> None:
    target = start_unprepared("shares_inside_lock", "sleep")
    target.expect("ready")
    status, found, _ = checks(target.pid)
    assert status == 3
    assert found["watch"]["sight"] == "limited"
    assert "locktop run" in found["watch"]["remedy"]
    text = tool.run("doctor", "-p", target.pid)
    assert text.returncode == 3
    assert text.stdout.startswith("Only a part of process")
    assert max(len(line) for line in text.stdout.splitlines() if "/" not in line) <= 100


def test_a_static_program_is_reported(start_unprepared: StartTarget) -> None:
    target = start_unprepared("shares_inside_lock", "sleep", flags=("-static",))
    target.expect("ready")
    _, found, _ = checks(target.pid)
    assert "statically linked" in found["watch"]["remedy"]


def test_a_stripped_program_is_reported(start_unprepared: StartTarget) -> None:
    target = start_unprepared("shares_inside_lock", "sleep", flags=("-s",))
    target.expect("ready")
    _, found, _ = checks(target.pid)
    assert found["program"]["sight"] == "limited"
    assert "debug files" in found["program"]["remedy"]


def test_a_stopped_process_is_reported(start_target: StartTarget) -> None:
    target = start_target("shares_inside_lock", "sleep")
    target.expect("ready")
    os.kill(target.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, target.pid, os.WSTOPPED | os.WNOWAIT)
    try:
        _, _, notes = checks(target.pid)
    finally:
        os.kill(target.pid, signal.SIGCONT)
    assert any("stopped" in note for note in notes)


def test_the_machine_alone() -> None:
    done = tool.run("doctor")
    assert done.returncode in (0, 3)
    assert done.stdout.startswith("What this machine allows:")
    assert "shared memory" in done.stdout


@pytest.mark.parametrize("pid", ["999999999", "0", "x"])
def test_a_wrong_process_is_one_line(pid: str) -> None:
    done = tool.run("doctor", "-p", pid)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("locktop: ")
