"""The past on the screen of a real process: a long wait is found that nobody was there to see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.screen import Screen
from support.targets import StartTarget

Need = Callable[..., Path]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 60)])
def test_a_long_wait_before_attaching_is_found_by_one_key(
    width: int, height: int, start_target: StartTarget, need: Need
) -> None:
    target = start_target("long_wait_on_request", level="contended")
    target.expect("ready")
    target.go_on("1300")
    waited_s = float(target.line())
    target.go_on("20")
    assert float(target.line()) < 1.0 < waited_s
    with Screen(need("tmux"), "-p", target.pid, width=width, height=height) as screen:
        screen.until(lambda text: "1 alert: {" in text.split("\n")[0], "the count of alerts")
        screen.press("{")
        found = screen.until(lambda text: "PAST" in text.split("\n")[0], "the past")
        assert f"worker waited {waited_s:.2f} s for g_cache_lock" in found
        assert "before the oldest moment" in found
        screen.press("End")
        screen.until(lambda text: "PAST" not in text, "now")
        screen.press("q")
        assert screen.status() == 0


def test_a_long_wait_of_a_running_session_is_visible_as_it_was(
    start_target: StartTarget, need: Need
) -> None:
    target = start_target("long_wait_on_request", level="contended")
    target.expect("ready")
    with Screen(need("tmux"), "-p", target.pid, width=120, height=40) as screen:
        screen.until(lambda text: "2/s" in text, "the first snapshot")
        target.go_on("2500")
        target.line()
        screen.until(lambda text: "No " in text.split("\n")[1], "a calm process")
        screen.press("{")
        found = screen.until(lambda text: "PAST" in text.split("\n")[0], "the past")
        assert "worker waits 1." in found or "worker waits 2." in found
        found = screen.until(lambda text: "g_cache_lock" in text.split("\n")[1], "the headline")
        screen.press("Enter")
        screen.until(lambda text: " cache_reload  " in text, "the stack of the holder")
        screen.press("End", "q")
        assert screen.status() == 0
