"""``locktop timeline`` of a process, and of a recording of it."""

from __future__ import annotations

import re
from pathlib import Path

from support import tool
from support.targets import StartTarget


def test_a_process_and_its_recording_have_a_time_line(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("threads_take_turns", "lock", "3")
    target.expect("ready")
    live = tool.run("timeline", "-p", str(target.pid), "-d", "0.5", "--width", "80").stdout
    assert_is_time_line(live)
    file = tmp_path / "turns.rec"
    tool.run("record", "-p", str(target.pid), "-d", "0.5", "-o", str(file))
    recorded = tool.run("timeline", str(file), "--width", "100").stdout
    assert_is_time_line(recorded)
    part = tool.run("timeline", str(file), "--from", "-100ms").stdout
    assert re.search(r": \d+(\.\d+)? ms from", part)


def assert_is_time_line(text: str) -> None:
    lanes = [line for line in text.splitlines() if line.startswith("turn:")]
    assert len(lanes) == 3
    assert all(re.search("[▁-█]", lane) for lane in lanes)
    assert re.search(r"^  a +\S+ m?s  g_turn$", text, re.M)
    assert re.search(r"turn:\d+ waited .* for mutex g_turn", text)


def test_a_long_wait_before_a_recording_is_on_its_time_line(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("long_wait_on_request", level="contended")
    target.expect("ready")
    target.go_on("1300")
    waited_s = float(target.line())
    file = str(tmp_path / "rec")
    tool.run("record", "-p", str(target.pid), "-d", "0.3", "-o", file)
    text = tool.run("timeline", file).stdout
    span = re.search(r"(\d+\.\d+) s from", text)
    assert span is not None
    assert float(span[1]) > waited_s
    lanes = [line for line in text.splitlines() if "worker" in line and "waited" in line]
    assert any("for mutex g_cache_lock" in lane for lane in lanes)


def test_wrong_use_is_one_line(tmp_path: Path) -> None:
    for arguments, says in (
        ((), "needs one of -p PID and FILE"),
        (("-p", "1", "x"), "needs one of -p PID and FILE"),
        (("x", "--width", "10"), "'10' is not a number of columns from 60"),
        (("x", "--width", "wide"), "'wide' is not a number of columns"),
        (("x", "--width", "1000000000"), "is not a number of columns"),
        (("x", "-d", "3"), "-d needs -p PID"),
        ((str(tmp_path / "none"),), "no such file"),
    ):
        done = tool.run("timeline", *arguments)
        assert done.returncode == 2
        assert says in done.stderr
        assert len(done.stderr.splitlines()) == 1
