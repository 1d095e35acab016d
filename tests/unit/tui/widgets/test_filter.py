"""The filter: it is live, and keys that come in a burst reach it."""

from __future__ import annotations

import pytest
from support.driven import opened
from textual.events import Key
from textual.widgets import Input
from unit.builders import scenarios


async def test_the_filter_is_live_and_escape_restores_all_rows() -> None:
    async with opened() as screen:
        await screen.keys("slash", *"TABLE")
        assert [name.split()[0] for name in screen.names("LOCK")] == ["g_table_lock"]
        assert [name.split()[0] for name in screen.names("THREAD")] == ["reader", "journal"]
        await screen.keys("enter")
        assert screen.locks.has_focus
        assert "with “TABLE”" in screen.text
        await screen.keys("escape")
        assert len(screen.names("LOCK")) == 4


async def test_keys_in_one_burst_reach_the_filter() -> None:
    async with opened() as screen:
        for _ in range(2):
            for key, letter in (("slash", "/"), ("q", "q"), ("u", "u"), ("slash", "/"), ("s", "s")):
                screen.app.post_message(Key(key, letter))
            await screen.settle()
            assert screen.app.is_running
            assert screen.app.screen.query_one(Input).value == "qu/s"
            await screen.keys("escape")
            assert not screen.app.screen.query_one(Input).display


async def test_keys_after_the_closing_key_go_to_the_list() -> None:
    async with opened() as screen:
        keys = [("slash", "/"), ("c", "c"), ("x", "x"), ("backspace", "\x7f"), ("a", "a")]
        for key, letter in [*keys, ("enter", "\r"), ("S", "S"), ("slash", "/"), ("c", "c")]:
            screen.app.post_message(Key(key, letter))
        await screen.says("reversed, with “cac”")
        assert screen.app.screen.query_one(Input).has_focus


async def test_keys_after_the_closing_key_go_to_a_screen_that_they_open() -> None:
    async with opened() as screen:
        await screen.keys("f")
        for key in ("enter", "c", "c", "question_mark"):
            screen.app.post_message(Key(key, None))
        await screen.settle()
        names = [type(one).__name__ for one in screen.app.screen_stack]
        assert names == ["MonitorScreen", "CallTreeScreen", "HelpScreen"]


async def test_keys_after_the_closing_key_go_to_another_entry_that_they_open() -> None:
    async with opened() as screen:
        await screen.keys("f")
        for key, letter in (("enter", "\r"), ("slash", "/"), ("S", "S"), ("c", "c"), ("p", "p")):
            screen.app.post_message(Key(key, letter))
        await screen.settle()
        assert screen.app.screen.query_one("#filter", Input).value == "Scp"
        assert "PAUSED" not in screen.text


async def test_letters_in_the_filter_are_no_commands() -> None:
    async with opened() as screen:
        await screen.keys("slash", "q", "p", "w")
        assert "PAUSED" not in screen.text
        assert screen.app.is_running


@pytest.mark.parametrize("opener", ["slash", "colon"])
async def test_tab_leaves_an_entry_and_the_keys_are_visible_again(opener: str) -> None:
    async with opened(scenarios.normal()) as screen:
        await screen.keys(opener, "x", "tab")
        assert "? help" in screen.lines[-1]
        await screen.keys("question_mark")
        assert "Esc closes this" in screen.text
