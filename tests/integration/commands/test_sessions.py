"""``locktop ctl --start``, ``--stop`` and ``--reset`` on a real process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import tool
from support.call_trees import scanned
from support.eventually import until
from support.screen import Screen
from support.targets import Compiler, StartTarget, Target

from locktop.collector.analysis.figures_since import since
from locktop.collector.sources.launch import preload_environment


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def ctl(pid: int, option: str) -> str:
    done = tool.run("ctl", "-p", pid, option)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def session(pid: int) -> dict[str, Any]:
    return tool.snapshot(pid, "--session")


def test_a_session_has_the_waits_after_its_start_alone(start_target: StartTarget) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    assert "session begins" in ctl(target.pid, "--start")
    assert tool.run("ctl", "-p", target.pid, "--start").returncode == 2
    target.go_on()
    target.truth()
    names = ("g_alpha_lock", "g_beta_lock", "g_gamma_lock")
    before = [tool.lock_named(session(target.pid), name) for name in names]
    assert all(lock["interval"]["wait_s"] == lock["wait_s"] > 0 for lock in before)
    ctl(target.pid, "--reset")
    after = [tool.lock_named(session(target.pid), name) for name in names]
    assert all(lock["interval"]["acquisitions"] == 0 for lock in after)
    assert "session ended after" in ctl(target.pid, "--stop")
    ended = session(target.pid)
    assert ended == session(target.pid), "a session that ended never changes"
    done = tool.run("ctl", "-p", target.pid, "--stop")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_a_session_begins_after_another_program_was_executed(compiler: Compiler) -> None:
    script = f"echo ready; read go; exec {compiler.program('ring_of_three')}"
    with Target(["sh", "-c", script], preload_environment()) as target:
        target.expect("ready")
        ctl(target.pid, "--start")
        target.go_on()
        target.expect("ready")
        assert "another program" in ctl(target.pid, "--start")
        assert tool.run("ctl", "-p", target.pid, "--start").returncode == 2
        assert session(target.pid)["duration_s"] > 0


def test_a_session_ends_when_the_same_program_is_executed_again() -> None:
    script = 'echo ready; read go; exec sh -c "echo ready; read go"'
    with Target(["sh", "-c", script], preload_environment()) as target:
        target.expect("ready")
        ctl(target.pid, "--start")
        counted_s = tool.snapshot(target.pid)["duration_s"]
        target.go_on()
        target.expect("ready")
        until(
            lambda: tool.snapshot(target.pid)["duration_s"] > counted_s,
            "counting for longer than at the begin of the session",
        )
        done = tool.run("snapshot", "-p", target.pid, "--session")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "there is no session" in done.stderr
        assert "another program" in ctl(target.pid, "--start")


def test_a_damaged_session_is_replaced_with_a_warning(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    ctl(target.pid, "--start")
    (file,) = (tmp_path / "locktop").glob("session-*")
    file.write_bytes(file.read_bytes()[:-1])
    done = tool.run("ctl", "-p", target.pid, "--start")
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "the new session replaces" in done.stderr
    assert "session begins" in done.stdout
    assert "session ended" in ctl(target.pid, "--stop")


def test_a_long_wait_before_the_session_is_never_its_longest(start_target: StartTarget) -> None:
    """Each scan measures the rate of the clock anew, so the old maximum differs a little."""
    target = start_target("long_wait_on_request")
    target.expect("ready")
    target.go_on("400")
    target.line()
    baseline = scanned(target.pid)
    target.go_on("50")
    target.line()
    for _ in range(8):
        found = since(scanned(target.pid), baseline)
        (lock,) = [one for one in found.locks if one.name == "g_cache_lock"]
        assert lock.wait_max_is_bound
        assert lock.wait_max_s == lock.wait_s < 0.4
        assert lock.hold_max_s is not None
        assert lock.hold_max_s < 0.4


def test_callers_has_the_waits_of_the_session_alone(start_target: StartTarget) -> None:
    def waits(*options: str) -> int:
        chosen = ("--weight", "count", "--format", "json", *options)
        done = tool.run("callers", "-p", target.pid, *chosen)
        assert (done.returncode, done.stderr) == (0, "")
        return sum(one["value"] for one in json.loads(done.stdout)["nodes"] if not one["depth"])

    def rounds(count: int) -> None:
        for _ in range(count):
            target.go_on()
            target.truth()

    target = start_target("one_contended_hold_of_three")
    target.expect("ready")
    wrong = tool.run("callers", "-p", target.pid, "--session")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    rounds(1)
    ctl(target.pid, "--start")
    rounds(2)
    assert (waits("--session"), waits()) == (2, 3)
    ctl(target.pid, "--stop")
    rounds(1)
    assert (waits("--session"), waits()) == (2, 4)
    wrong = tool.run("callers", "--session", "none.json")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)


def test_without_a_session_one_line_says_how_to_begin(start_target: StartTarget) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    done = tool.run("snapshot", "-p", target.pid, "--session")
    assert done.returncode == 2
    assert f"locktop ctl -p {target.pid} --start" in done.stderr
    json.loads(tool.run("snapshot", "-p", target.pid).stdout)


def test_a_sampled_process_has_no_session_of_commands(start_unprepared: StartTarget) -> None:
    target = start_unprepared("nothing_to_show")
    target.expect("ready")
    done = tool.run("ctl", "-p", target.pid, "--start")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    for command in ("snapshot", "callers"):
        refused = tool.run(command, "-p", target.pid, "--session")
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
        assert "a session is on one screen only" in refused.stderr
        assert "--start" not in refused.stderr
    assert target.finish() == (0, [])


def test_the_screen_and_the_commands_have_one_session(
    start_target: StartTarget, need: Callable[[str], Path]
) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    with Screen(need("tmux"), "-p", target.pid, width=120, height=40) as screen:
        screen.until(lambda text: "(key L)" in text, "the first snapshot")
        screen.press("R")
        screen.until(lambda text: "session 00:" in text, "the session of the key")
        assert session(target.pid)["duration_s"] > 0
        ctl(target.pid, "--stop")
        screen.until(lambda text: "session 00:" not in text, "the end by the command")
        ctl(target.pid, "--start")
        screen.until(lambda text: "session 00:" in text, "the session of the command")
        screen.press("E")
        screen.until(lambda text: "The session ended after" in text, "the end by the key")
        assert tool.run("ctl", "-p", target.pid, "--stop").returncode == 2
        screen.press("q")
        assert screen.status() == 0
