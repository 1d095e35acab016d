"""The level dialog, and the level in the first line."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.driven import opened
from support.feed import strips_of
from textual.events import Key
from unit.builders import scenarios

from locktop.collector.sources.levels import NAMES as LEVELS
from locktop.tui.themes import shipped_names


async def test_the_level_is_in_the_first_line_on_every_size() -> None:
    for size in [(80, 24), (200, 60)]:
        async with opened(size=size) as screen:
            assert "  records waits (key L)  " in screen.status
            await screen.show(replace(scenarios.normal(), level="all", lost_events=12345))
            assert "  records all (key L)  " in screen.status


async def test_the_dialog_offers_every_level() -> None:
    async with opened(replace(scenarios.normal(), level="counting"), size=(80, 24)) as screen:
        await screen.keys("L")
        await screen.says("WHAT IT DOES")
        for level in LEVELS:
            # A rule of the screen below may be at the left of the dialog.
            assert any(level in line.split()[:2] for line in screen.lines), level
        assert "in store 4711, counting now" in screen.text
        await screen.keys("down", "down", "enter", "y")
        await screen.says("Level blocks, was contended")
        assert screen.feed.level == "blocks"
        assert screen.locks.has_focus


async def test_the_level_of_a_foreign_process_is_confirmed() -> None:
    async with opened(size=(80, 24)) as screen:
        await screen.keys("L", "down", "enter")
        await screen.says("locktop did not start store 4711. Set blocks?")
        await screen.keys("enter")
        assert screen.feed.level == "contended"
        await screen.keys("up")  # another level, so another question
        assert "did not start" not in screen.text
        await screen.keys("y")
        assert screen.feed.level == "contended"
        await screen.keys("down", "enter", "escape")
        assert "WHAT IT DOES" not in screen.text
        assert screen.feed.level == "contended"


async def test_the_level_of_a_program_that_locktop_started_is_set_at_once() -> None:
    async with opened(is_own_program=True) as screen:
        await screen.keys("L", "down", "enter")
        await screen.says("Level blocks, was contended")


@pytest.mark.parametrize("key", ["escape", "q", "L"])
async def test_escape_leaves_the_dialog_without_a_change(key: str) -> None:
    async with opened() as screen:
        await screen.keys("L", "down")
        await screen.says("WHAT IT DOES")
        await screen.keys(key)
        assert "WHAT IT DOES" not in screen.text
        assert screen.feed.level == "contended"
        assert screen.app.is_running


async def test_keys_in_one_burst_reach_the_level_dialog() -> None:
    async with opened() as screen:
        for key, letter in (("L", "L"), ("down", None), ("enter", "\r"), ("y", "y"), ("S", "S")):
            screen.app.post_message(Key(key, letter))
        await screen.says("Level blocks, was contended")
        assert "reversed" in screen.text


async def test_the_last_line_says_why_a_level_cannot_be_set() -> None:
    async with opened(size=(80, 24)) as screen:
        screen.feed.refusal = "cannot set the level: process 4711 (store) has ended"
        await screen.keys("L", "up", "enter", "y")
        await screen.says("cannot set the level: process 4711 (store) has ended")
        assert screen.lines[-1].startswith(" cannot set the level: ")


async def test_an_ended_process_has_no_level_to_set() -> None:
    async with opened(scenarios.ended()) as screen:
        await screen.keys("L")
        await screen.says("The process has ended: there is no level to set.")
        assert "WHAT IT DOES" not in screen.text


@pytest.mark.parametrize("theme", shipped_names())
async def test_each_theme_marks_the_chosen_level(theme: str) -> None:
    async with opened(size=(80, 24), theme=theme) as screen:
        await screen.keys("L", "down")
        await screen.says("WHAT IT DOES")
        styles = {
            text.split()[0]: style
            for strip in strips_of(screen.app)
            for text, style, _ in strip
            if text.split()[:1] and text.split()[0] in LEVELS
        }
        assert set(styles) == set(LEVELS)
        others = {str(style) for level, style in styles.items() if level != "blocks"}
        assert str(styles["blocks"]) not in others
