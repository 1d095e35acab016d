"""The list of all actions: filtered by typing, Enter runs one."""

from __future__ import annotations

import pytest
from support.driven import Screen, opened
from textual import events

from locktop.tui.extensions.whatif.screen import WhatIfScreen
from locktop.tui.screen_actions import MONITOR
from locktop.tui.widgets.item_list import ItemList
from locktop.tui.widgets.palette import Palette


def actions(screen: Screen) -> ItemList:
    return screen.app.screen.query_one("#palette-actions", ItemList)


def found(screen: Screen) -> list[str]:
    """Return the rows of the palette without their keys, the first one first."""
    lines = screen.lines
    begin = next(number for number, line in enumerate(lines) if "Actions of the" in line)
    return [" ".join(line.split()[1:]) for line in lines[begin + 1 :]]


async def test_the_palette_has_every_other_action_of_the_screen() -> None:
    async with opened() as screen:
        await screen.keys("ctrl+p")
        assert actions(screen).count() == len(set(MONITOR.actions)) - 1
        assert "? F1" in screen.text
        await screen.keys("escape")
        assert not isinstance(screen.app.screen, Palette)


@pytest.mark.parametrize("letters", ["reverse", "revERSE the ord"])
async def test_typing_finds_an_action_and_enter_runs_it(letters: str) -> None:
    async with opened() as screen:
        await screen.keys("ctrl+p", *("space" if one == " " else one for one in letters))
        assert actions(screen).count() == 1
        await screen.keys("enter")
        await screen.says("by wait, reversed")


async def test_backspace_and_control_u_bring_actions_back() -> None:
    async with opened() as screen:
        await screen.keys("ctrl+p", *"sortx")
        assert actions(screen).count() == 0
        await screen.keys("enter")  # without an action nothing happens
        await screen.keys("backspace")
        assert actions(screen).count() > 0
        await screen.keys("ctrl+u")
        assert actions(screen).count() == len(set(MONITOR.actions)) - 1


async def test_keys_in_a_burst_run_the_action_that_they_name() -> None:
    async with opened() as screen:
        for key, character in (("ctrl+p", None), ("z", "z"), ("o", "o"), ("o", "o"), ("m", "m")):
            screen.app.post_message(events.Key(key, character))
        screen.app.post_message(events.Key("enter", "\r"))
        await screen.settle()
        assert screen.app.screen.has_class("zoomed")


async def test_an_action_of_the_app_runs_too() -> None:
    async with opened() as screen:
        await screen.keys("ctrl+p", *"theme", "enter")
        await screen.says("Theme ")


async def test_a_screen_above_has_a_palette_of_its_own() -> None:
    async with opened() as screen:
        await screen.keys("c", "ctrl+p", *"weigh", "enter")
        await screen.says("by waits")


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("what", "whatif"),  # the description of quit has the word, too
        ("whatif", "whatif"),
        ("time", "timeline"),
        ("level", "level"),
        ("past", "save past"),
    ],
)
async def test_a_name_that_begins_with_the_words_comes_first(typed: str, first: str) -> None:
    async with opened() as screen:
        await screen.keys("ctrl+p", *typed)
        assert found(screen)[0].startswith(f"{first} ")


async def test_a_part_of_a_name_finds_what_if_and_not_quit() -> None:
    async with opened() as screen:
        await screen.keys("ctrl+p", *"what", "enter")
        assert screen.app.is_running
        assert isinstance(screen.app.screen, WhatIfScreen)


async def test_actions_that_match_alike_keep_the_order_of_the_help() -> None:
    async with opened() as screen:
        await screen.keys("ctrl+p", *"save")
        names = [line.split()[:2] for line in found(screen)[:4]]
        assert names == [["save", "save"], ["save", "text"], ["save", "past"], ["views", "saved"]]
