"""Findings that the screen shows without an alert: potential deadlocks, too few CPUs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.screen import Screen
from support.targets import StartTarget

Need = Callable[..., Path]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 60)])
def test_the_screen_counts_potential_deadlocks_and_shows_them_at_a_key(
    width: int, height: int, start_target: StartTarget, need: Need
) -> None:
    target = start_target("mutex_orders", "inversion")
    target.expect("ok")
    with Screen(need("tmux"), "-p", target.pid, width=width, height=height) as screen:
        seen = screen.until(lambda text: "1 potential: d" in text, "the count")
        assert "DEADLOCK" not in seen
        screen.press("d")
        high = "2 locks taken in different orders, high confidence"
        first = screen.until(lambda text: high in text, "the first step")
        screen.press("End")
        both = ("mutex g_a", "mutex g_b", " a_b ", " b_a ", "taken in", "wanted")
        screen.until(lambda text: all(part in first + text for part in both), "the last step")
        screen.press("q")
        assert screen.status() == 0


def test_a_suppressed_potential_deadlock_is_not_counted(
    start_target: StartTarget, need: Need, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = start_target("mutex_orders", "inversion")
    target.expect("ok")
    (tmp_path / ".locktop-suppressions").write_text("a_b AND b_a  # they never run at once\n")
    monkeypatch.chdir(tmp_path)
    with Screen(need("tmux"), "-p", target.pid, width=80, height=24) as screen:
        screen.until(lambda text: "orders" in text and "2/s" in text, "the first snapshot")
        # A suppression needs the names of functions, which come later.
        screen.until(lambda text: "potential:" not in text, "no count")
        screen.press("d")
        screen.until(lambda text: "1 left out by a suppression file" in text, "the reason")
        screen.press("q")
        assert screen.status() == 0


def test_the_first_line_says_that_there_are_too_few_cpus(
    start_target: StartTarget, need: Need
) -> None:
    target = start_target("contention_patterns", "oversubscribed")
    target.expect("ready")
    with Screen(need("tmux"), "-p", target.pid, width=120, height=40) as screen:
        screen.until(lambda text: "oversubscribed: ?" in text, "the pattern")
        screen.press("p", "?")  # the next snapshot may not have the pattern, so pause
        screen.until(lambda text: "Keys" in text, "the help")
        screen.press("q")
        screen.until(lambda text: "Locks by" in text, "the lists again")
        screen.press("q")
        assert screen.status() == 0
