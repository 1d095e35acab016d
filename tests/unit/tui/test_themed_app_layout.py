"""The layout comes to rest on every size: no bar appears and disappears for ever."""

from __future__ import annotations

import asyncio

import pytest
from support.driven import opened
from textual import events
from textual.geometry import Size
from unit.builders import scenarios

from locktop.tui import themed_app

SIZES = [(width, height) for width in (1, 4, 5, 6, 84) for height in (3, 30)]
#: Several layouts of a loop. A slow machine makes fewer, and a layout that ends needs few periods.
PERIOD_S = 0.1
MAX_PERIODS = 50
PATIENCE_S = 60


@pytest.mark.parametrize("keys", [(), ("question_mark",), ("L",), ("q",), ("c",), ("d", "enter")])
async def test_the_layout_comes_to_rest(keys: tuple[str, ...]) -> None:
    layouts = [0]

    def count(_: object) -> None:
        layouts[0] += 1

    async with opened(scenarios.deadlock(), leave_running=lambda: None) as screen:
        await screen.keys(*keys)
        top = screen.app.screen
        top.screen_layout_refresh_signal.subscribe(top, count, immediate=True)
        for size in SIZES:
            before = layouts[0]
            await screen.pilot.resize_terminal(*size)
            async with asyncio.timeout(PATIENCE_S):
                while layouts[0] == before:
                    await asyncio.sleep(0)
            assert await _rests(layouts), size
        top.screen_layout_refresh_signal.unsubscribe(top)


async def _rests(layouts: list[int]) -> bool:
    """Whether the number of layouts comes to rest. Textual makes them by a timer."""
    for _ in range(MAX_PERIODS):
        before = layouts[0]
        await asyncio.sleep(PERIOD_S)
        if layouts[0] == before:
            return True
    return False


@pytest.mark.parametrize("keys", [(), ("question_mark",), ("c",)])
async def test_two_sizes_at_once_do_not_follow_each_other_for_ever(keys: tuple[str, ...]) -> None:
    layouts = [0]

    def count(_: object) -> None:
        layouts[0] += 1

    async with opened(scenarios.deadlock()) as screen:
        await screen.keys(*keys)
        top = screen.app.screen
        top.screen_layout_refresh_signal.subscribe(top, count, immediate=True)
        for size in (Size(60, 20), Size(90, 10)):
            top.post_message(events.Resize(size, size))
            top.call_later(lambda: None)  # else Textual would drop the first size
        assert await _rests(layouts)
        await screen.settle()
        assert top.size == screen.app.size
        top.screen_layout_refresh_signal.unsubscribe(top)


async def test_an_old_size_that_comes_last_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(scenarios.deadlock()) as screen:
        now, old = Size(100, 30), Size(50, 10)
        driver = screen.app._driver
        assert driver is not None
        monkeypatch.setattr(themed_app, "MeteredDriver", type(driver))
        monkeypatch.setattr(driver, "size_event", lambda: events.Resize(now, now), raising=False)
        screen.app.post_message(events.Resize(now, now))
        screen.app.post_message(events.Callback(lambda: None))
        screen.app.post_message(events.Resize(old, old))
        await screen.settle()
        assert screen.app.size == screen.app.screen.size == now
