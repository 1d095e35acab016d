"""The layout comes to rest on every size: no bar appears and disappears for ever."""

from __future__ import annotations

import asyncio

import pytest
from support.driven import opened
from unit.builders import scenarios

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
