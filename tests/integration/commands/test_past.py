"""The past on the screen of a real process: a long wait that nobody saw is found."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support import tool
from support.screen import Screen
from support.targets import StartTarget

from locktop.collector.model import Notable
from locktop.collector.recording.notable_moments import NotableMoments
from locktop.collector.recording.recording_info import RecordingInfo
from locktop.collector.recording.recording_writer import RecordingWriter
from locktop.collector.sources.attach import attach

Need = Callable[..., Path]
#: Seconds between a planted fault and the user; the two long ones run outside CI.
_AGES_S = (0, 30, 600) if os.environ.get("LOCKTOP_LONG_TESTS") else (0,)
#: Seconds of 200 and more waits of each thread in a second; 0: the few that a short ring has.
_BUSY_S = (0, 30) if os.environ.get("LOCKTOP_LONG_TESTS") else (0,)
#: The hold of the targets, in the milliseconds of their argument and in seconds.
_HOLD_MS, _HOLD_S = "1300", 1.3


def shows_wait(text: str, words: str, waited_s: float) -> bool:
    """Return whether a text has the long wait, with ``words`` after it.

    The wait lasts as long as the hold, and no longer than the program measured around it. The last
    digit may be rounded up.
    """
    found = re.findall(rf" waited (\d\.\d\d) s for {words}", text)
    return any(_HOLD_S <= float(one) < waited_s + 0.01 for one in found)


def shows(words: str) -> Callable[[str], bool]:
    """Return a condition: a screen has these words."""
    return lambda text: words in text


@pytest.mark.parametrize("age_s", _AGES_S)
@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 60)])
def test_a_long_wait_before_attaching_is_found_by_one_key(
    width: int, height: int, age_s: int, start_target: StartTarget, need: Need
) -> None:
    target = start_target("long_wait_on_request", level="contended")
    target.expect("ready")
    target.go_on(_HOLD_MS)
    waited_s = float(target.line())
    target.go_on("20")
    assert float(target.line()) < 1.0 < waited_s
    time.sleep(age_s)  # the age is what the test is about
    with Screen(need("tmux"), "-p", target.pid, width=width, height=height) as screen:
        screen.until(lambda text: "1 alert (key {)" in text.split("\n")[1], "the count of alerts")
        screen.press("{")
        # The terminal may get the lines of one picture one after the other.
        screen.until(lambda text: "PAST" in text.split("\n")[1], "the past")
        screen.until(lambda text: shows_wait(text, "g_cache_lock", waited_s), "the wait")
        screen.until(lambda text: "Oldest moment; " in text, "its place")
        screen.press("8")
        screen.until(
            lambda text: shows_wait(text, "mutex g_cache_lock", waited_s),
            "the wait under the cursor of the time line",
        )
        screen.press("Escape")
        screen.until(lambda text: "Details" in text, "the lists")
        screen.press("End")
        screen.until(lambda text: "PAST" not in text, "now")
        screen.press("q")
        assert screen.status() == 0


def test_a_long_wait_before_attaching_is_on_the_time_line(
    start_target: StartTarget, need: Need, tmp_path: Path
) -> None:
    target = start_target("long_wait_on_request", level="contended")
    target.expect("ready")
    target.go_on(_HOLD_MS)
    waited_s = float(target.line())
    done = tool.run("record", "-p", target.pid, "-o", f"{tmp_path}/r", "-d", "0.3")
    assert done.returncode == 0, done.stderr
    with Screen(need("tmux"), "replay", f"{tmp_path}/r", width=100, height=30) as screen:
        screen.until(lambda text: "REPLAY" in text.split("\n")[1], "the recording")
        screen.press("T")
        screen.until(lambda text: "Cursor" in text, "the time line")
        screen.press("{")
        screen.until(
            lambda text: shows_wait(text, "mutex g_cache_lock", waited_s),
            "the wait under the cursor",
        )
        screen.press("q")
        assert screen.status() == 0


@pytest.mark.parametrize("busy_s", _BUSY_S)
def test_a_long_wait_is_found_after_many_brief_ones(
    busy_s: int, start_target: StartTarget, need: Need
) -> None:
    ring = {} if busy_s else {"LOCKTOP_RING": "16"}
    target = start_target("busy_after_long_wait", level="contended", environment=ring)
    target.expect("ready")
    # Each round overwrites three records of each worker: two waits at barriers, one for the lock.
    target.go_on(f"{_HOLD_MS} {busy_s * 400 or 40} {3 if busy_s else 0}")
    waited_s = float(target.line())
    with Screen(need("tmux"), "-p", target.pid, width=120, height=30) as screen:
        screen.until(lambda text: "1 alert (key {)" in text.split("\n")[1], "the count of alerts")
        screen.press("{")
        screen.until(lambda text: "PAST" in text.split("\n")[1], "the past")
        # The first snapshot that is kept may come before the name of the lock, which follows.
        until_named = r"g_cache_lock.*, and 2 more"
        screen.until(lambda text: shows_wait(text, until_named, waited_s), "the waits")
        screen.press("End", "q")
        assert screen.status() == 0


def test_a_sampled_process_has_no_records_of_earlier_waits(
    start_unprepared: StartTarget, need: Need
) -> None:
    target = start_unprepared("long_wait_on_request")
    target.expect("ready")
    with Screen(need("tmux"), "-p", target.pid, width=80, height=24) as screen:
        screen.until(lambda text: "sampled from outside" in text, "the first snapshot")
        # The memory gets a snapshot just after the screen.
        screen.press("[")
        screen.until(lambda text: "PAST" in text.split("\n")[1], "the past")
        screen.press("{")
        screen.until(lambda text: "Earlier waits have no records." in text, "the last line")
        screen.press("End", "q")
        assert screen.status() == 0


@pytest.mark.parametrize("age_s", _AGES_S)
def test_a_long_wait_of_a_running_session_is_visible_as_it_was(
    age_s: int, start_target: StartTarget, need: Need
) -> None:
    target = start_target("long_wait_on_request", level="contended")
    target.expect("ready")
    with Screen(need("tmux"), "-p", target.pid, width=120, height=40) as screen:
        screen.until(lambda text: "(key L)" in text, "the first snapshot")
        target.go_on("hold")
        screen.until(lambda text: "1 alert (key {)" in text.split("\n")[1], "the count of alerts")
        target.go_on("release")
        target.line()
        screen.until(lambda text: "No " in text.split("\n")[2], "a calm process")
        time.sleep(age_s)
        screen.press("{")
        screen.until(lambda text: "PAST" in text.split("\n")[1], "the past")
        screen.until(lambda text: "worker waits " in text, "the alert")
        screen.until(lambda text: "g_cache_lock" in text.split("\n")[2], "the headline")
        screen.press("Enter")
        screen.until(lambda text: " cache_reload  " in text, "the stack of the holder")
        screen.press("End", "q")
        assert screen.status() == 0


def test_a_recording_of_a_process_that_is_gone_shows_the_wait(
    start_target: StartTarget, need: Need, tmp_path: Path
) -> None:
    target = start_target("long_wait_on_request", level="contended")
    target.expect("ready")
    source, moments = attach(target.pid), NotableMoments()
    snapshot = source.scan(resolve=True)
    writer = RecordingWriter(
        tmp_path / "r", RecordingInfo.from_snapshot(snapshot, "1.0"), time.time_ns()
    )
    target.go_on("hold")
    found: list[Notable] = []
    while not found:
        snapshot, now_ns = source.scan(resolve=True), time.time_ns()
        found = moments.find(snapshot, now_ns)
        writer.add_snapshot(snapshot, now_ns)
        writer.add_notables(found, now_ns)
    writer.finish("enough", time.time_ns())
    source.close()
    target.kill()
    with Screen(need("tmux"), "replay", str(tmp_path / "r"), width=120, height=40) as screen:
        screen.until(lambda text: "REPLAY" in text.split("\n")[1], "the replay")
        screen.press("}")
        screen.until(lambda text: "worker waits" in text.split("\n")[2], "the alert")
        # The snapshot of that moment is drawn when it is read, after the first line.
        screen.until(lambda text: "g_cache_lock" in text.split("\n")[2], "the headline")
        screen.press("End", "Enter")
        screen.until(lambda text: " cache_reload  " in text, "the stack of the holder")
        screen.press("Home", "p", "+", "+")
        screen.until(lambda text: "100%" in text.split("\n")[1], "the end, by the player")
        screen.press("q")
        assert screen.status() == 0


def test_the_first_moment_of_an_alert_has_names(start_target: StartTarget, need: Need) -> None:
    target = start_target("long_wait_on_request", level="contended")
    target.expect("ready")
    target.go_on("hold")
    with Screen(need("tmux"), "-p", target.pid, width=80, height=50) as screen:
        screen.until(lambda text: "1 alert (key {)" in text.split("\n")[1], "the count of alerts")
        screen.until(lambda text: "g_cache_lock" in text.split("\n")[2], "the names of now")
        screen.press("{", "Home")
        screen.until(lambda text: "PAST" in text.split("\n")[1], "the oldest moment")
        screen.until(lambda text: "g_cache_lock" in text.split("\n")[2], "its names")
        screen.press("Enter")
        screen.until(lambda text: "long_wait_on_request.c:19" in text, "the stack of the wait")
        assert "mutex 0x" not in screen.text()
        screen.press("End", "q")
        assert screen.status() == 0


def test_a_calm_moment_says_what_was_before(
    start_target: StartTarget, need: Need, tmp_path: Path
) -> None:
    target = start_target("long_wait_on_request", level="contended")
    target.expect("ready")
    said = re.compile(
        r" Quiet now\. 3 long waits(, one about every [\d mins]+)?, the last [\d mins]+ ago"
        r"( for g_cache_lock)? \(key \{\)"
    )
    with Screen(need("tmux"), "-p", target.pid, width=80, height=24) as screen:
        screen.until(lambda text: "(key L)" in text, "the first snapshot")
        screen.until(lambda text: "No " in text.split("\n")[2], "no alert yet")
        for number in (1, 2, 3):
            target.go_on(_HOLD_MS)
            target.line()
            # A slow scan dates a present wait late: the next one would count as the same moment.
            screen.until(shows(f" {number} long wait"), "its alert")
        screen.until(lambda text: bool(said.match(text.split("\n")[2])), "the alerts")
        screen.press("q")
        assert screen.status() == 0
    path = tmp_path / "r"
    done = tool.run("record", "-p", target.pid, "-o", str(path), "-d", "1")
    assert done.returncode == 0, done.stderr
    with Screen(need("tmux"), "replay", str(path), "--at", "100%", width=80, height=24) as screen:
        screen.until(lambda text: bool(said.match(text.split("\n")[2])), "the alerts")
        screen.press("{")
        screen.until(lambda text: "worker waited " in text.split("\n")[2], "the last of them")
        screen.press("q")
        assert screen.status() == 0
    with Screen(need("tmux"), "replay", str(path), "--at", "alert:3", width=80, height=24) as at:
        at.until(lambda text: "worker waited " in text.split("\n")[2], "the third alert")
        at.press("q")
        assert at.status() == 0


def test_a_screen_reader_hears_of_alerts(start_target: StartTarget) -> None:
    target = start_target("long_wait_on_request", level="contended")
    target.expect("ready")
    for _ in range(3):
        target.go_on(_HOLD_MS)
        target.line()
    running = tool.start("--accessible", "-p", target.pid)
    assert running.stdout is not None
    deadline = time.monotonic() + tool.PATIENCE_S
    while not (line := running.stdout.readline()).startswith("Alerts: 3 long waits"):
        assert line
        assert time.monotonic() < deadline, line
    target.kill()
    output, errors = running.communicate(timeout=tool.PATIENCE_S)
    assert running.returncode == 0, errors
    assert " for g_cache_lock" in line
    assert "State: ended" in output.splitlines()
