"""Findings that the screen shows without an alert: potential deadlocks, too few CPUs."""

from __future__ import annotations

import os
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
        seen = screen.until(lambda text: "1 potential" in text, "the count")
        assert "DEADLOCK" not in seen
        screen.press("d")
        high = "2 locks taken in different orders, high confidence"
        first = screen.until(lambda text: high in text, "the first step")
        both = ("mutex g_a", "mutex g_b", " a_b ", " b_a ", "taken in", "wanted")

        def has_all(text: str) -> bool:
            screen.press("End")  # again: source lines make the details longer
            return all(part in first + text for part in both)

        screen.until(has_all, "the last step")
        screen.press("q")
        assert screen.status() == 0


def test_a_suppressed_potential_deadlock_is_not_counted(
    start_target: StartTarget, need: Need, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = start_target("mutex_orders", "inversion")
    target.expect("ok")
    file = tmp_path / ".locktop-suppressions"
    file.write_text("a_b AND b_a  # they never run at once\n")
    monkeypatch.chdir(tmp_path)
    # Root reads the file only if it is named.
    named = ("--suppressions", str(file)) if os.geteuid() == 0 else ()
    with Screen(need("tmux"), "-p", target.pid, *named, width=80, height=24) as screen:
        screen.until(lambda text: "orders" in text and "(key L)" in text, "the first snapshot")
        # A suppression needs the names of functions, which come later.
        screen.until(lambda text: "potential:" not in text, "no count")
        screen.press("d")
        screen.until(lambda text: "1 left out by a suppression file" in text, "the reason")
        screen.press("q")
        assert screen.status() == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root ignores the file")
def test_the_screen_says_that_root_does_not_read_a_file(
    start_target: StartTarget, need: Need, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = start_target("mutex_orders", "inversion")
    target.expect("ok")
    os.mkfifo(tmp_path / ".locktop-suppressions")
    monkeypatch.chdir(tmp_path)
    with Screen(need("tmux"), "-p", target.pid, width=120, height=24) as screen:
        screen.until(lambda text: "no suppressions: root reads" in text, "the warning")
        screen.until(lambda text: "1 potential" in text, "the number")
        screen.press("q")
        assert screen.status() == 0


def test_the_first_line_says_that_there_are_too_few_cpus(
    start_target: StartTarget, need: Need
) -> None:
    target = start_target("contention_patterns", "oversubscribed")
    target.expect("ready")
    with Screen(need("tmux"), "-p", target.pid, width=120, height=40) as screen:
        screen.until(lambda text: "oversubscribed (key ?)" in text, "the pattern")
        screen.press("p", "?")  # the next snapshot may not have the pattern, so pause
        screen.until(lambda text: "Keys" in text, "the help")
        screen.press("q")
        screen.until(lambda text: "Locks by" in text, "the lists again")
        screen.press("q")
        assert screen.status() == 0
