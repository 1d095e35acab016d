"""Keys that come faster than screens open and close."""

from __future__ import annotations

import gc
import warnings

import pytest
from support.driven import opened
from textual import events
from unit.builders import scenarios

from locktop.tui.actions import ACTIONS
from locktop.tui.screens.call_tree import CallTreeScreen
from locktop.tui.screens.monitor import MonitorScreen
from locktop.tui.widgets.filter import FindEntry

#: The actions that open each screen and dialogue of the monitor.
OPENERS = ("help", "callers", "inside", "calls", "timeline", "heat_map", "profiles", "level")


@pytest.mark.parametrize("opener", OPENERS)
async def test_a_screen_may_close_before_its_widgets_are_there(opener: str) -> None:
    async with opened(scenarios.normal()) as screen:
        monitor = screen.app.screen
        await screen.app.run_action(ACTIONS[opener].textual_action, monitor)
        above = screen.app.screen
        if above is not monitor:
            above.dismiss()
        await screen.settle()
        assert screen.app.screen is monitor
        assert "Locks by" in screen.text


async def test_an_entry_may_be_wanted_before_or_after_the_widgets_of_its_screen() -> None:
    async with opened(scenarios.normal()) as screen:
        monitor = screen.app.screen
        assert isinstance(monitor, MonitorScreen)
        monitor.action_callers()
        above = screen.app.screen
        assert isinstance(above, CallTreeScreen)
        above.action_filter()
        above.action_find()
        await screen.settle()
        await screen.keys("escape")
        assert screen.app.screen is monitor
        await above.filter.on_key(events.Key("c", "c"))
        await screen.settle()
        assert isinstance(screen.app.screen, CallTreeScreen)


async def test_a_second_answer_closes_no_other_screen() -> None:
    async with opened(scenarios.normal()) as screen:
        await screen.keys("c")
        above = screen.app.screen
        above.dismiss()
        above.dismiss()
        await screen.settle()
        assert "Locks by" in screen.text
        assert len(screen.app.screen_stack) == 1


async def test_a_screen_below_the_help_closes_nothing() -> None:
    async with opened(scenarios.normal()) as screen:
        await screen.keys("c")
        above = screen.app.screen
        await screen.keys("question_mark")
        above.dismiss()
        await screen.settle()
        assert "Esc closes this" in screen.text
        await screen.keys("escape", "escape")
        assert len(screen.app.screen_stack) == 1


async def test_a_screen_closes_whatever_opened_it() -> None:
    async with opened(scenarios.normal()) as screen:
        monitor = screen.app.screen
        assert isinstance(monitor, MonitorScreen)
        await screen.keys("c")
        closed_entry = screen.app.screen.query_one("#find", FindEntry)
        await screen.keys("escape")
        # The entry handles a key in its queue after its screen has closed.
        with closed_entry._context():
            monitor.action_callers()
        await screen.settle()
        await screen.keys("escape")
        assert not monitor.above.is_open
        assert "Locks by" in screen.text


async def test_the_end_of_a_screen_leaves_a_later_one_in_use() -> None:
    async with opened(scenarios.normal()) as screen:
        monitor = screen.app.screen
        assert isinstance(monitor, MonitorScreen)
        await screen.keys("c")
        screen.app.screen.dismiss()
        monitor.action_callers()  # before Textual has told the end of the first
        await screen.settle()
        assert monitor.above.screen is screen.app.screen


async def test_replaced_work_leaves_no_warning() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        async with opened(scenarios.normal()) as screen:
            for _ in range(5):
                screen.app.post_message(events.Key("R", "R"))
            await screen.says("The session begins")
        gc.collect()
    assert [str(one.message) for one in seen if one.category is RuntimeWarning] == []
