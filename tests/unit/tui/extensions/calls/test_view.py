"""The function calls on the screen, driven by keys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.driven import says, settle
from unit.builders.function_calls import snapshot, thread_tree
from unit.tui.screens.test_call_tree import live

from locktop.collector.extensions.calls.calls_profile import NO_CALLS
from locktop.collector.recording.history import History
from locktop.tui.app import LocktopApp
from locktop.tui.feed import ReplayFeed

SIZES = ((80, 24), (200, 60))


@pytest.mark.parametrize("size", SIZES)
async def test_the_key_shows_the_tree_of_the_next_scans(size: tuple[int, int]) -> None:
    async with live(snapshot(), size, callers=("wait", False)) as view:
        await view.keys("escape", "C")
        assert "calls" in view.feed.wanted_sections
        assert "the next scan reads the function calls" in view.text
        await view.show(snapshot(thread_tree(1)))
        assert "By time in calls 10.0s" in view.text
        assert "▾ main store.c:901" in view.text
        await view.show(snapshot(thread_tree(1), thread_tree(2, 3.0)))
        assert "By time in calls 40.0s" in view.text
        await view.keys("escape")
        assert "calls" not in view.feed.wanted_sections
        assert "Locks by" in view.text


async def test_without_instrumentation_one_line_says_how_to_build() -> None:
    async with live(snapshot(), (80, 24), callers=("wait", False)) as view:
        await view.keys("escape", "C")
        await view.show(snapshot())
        assert NO_CALLS in view.row("no function calls")


async def test_weights_filter_and_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with live(snapshot(), (100, 30), callers=("wait", False)) as view:
        await view.keys("escape", "C")
        await view.show(snapshot(thread_tree(1)))
        await view.keys("v")
        assert "By own time, without callees 10.0s" in view.text
        await view.keys("v")
        assert "By calls 37" in view.text
        await view.keys("slash", *"find", "enter")
        assert "find store.c:903" in view.text
        assert "store store.c:904" not in view.text
        await view.keys("w")
        await view.app.workers.wait_for_complete()
        await view.settle()
        (saved,) = tmp_path.iterdir()
        assert saved.name.startswith("locktop-calls-")
        assert json.loads(saved.read_text())["format"] == "locktop.calls"


async def test_a_replay_has_the_calls_of_the_moment() -> None:
    history = History()
    history.add(snapshot(thread_tree(1)), 1_000_000_000)
    history.add(snapshot(), 2_000_000_000)
    app = LocktopApp(ReplayFeed(), "night", moments=history, is_replay=True, environ={})
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        for key in ("end", "C"):
            await pilot.press(key)
            await settle(pilot)
        # Another thread reads the moment.
        await says(app, pilot, "By time in calls 10.0s")
