"""The time line and the heat map driven by keys, over a past that the test builds."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from support.driven import Screen
from support.feed import HandFeed
from unit.builders.time_lines import FixedPast, relay

from locktop.collector.model import Snapshot
from locktop.tui.app import LocktopApp
from locktop.tui.widgets.lane_list import LaneList


class Live(Screen):
    """The monitor with a memory."""

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until the screen that another thread reads for has drawn."""
        deadline = time.monotonic() + 60.0
        while not reached():
            assert time.monotonic() < deadline, self.text
            await self.pilot.pause()
        await self.settle()

    def has_read(self) -> bool:
        """Whether all of the span is on the screen."""
        return "reading" not in self.status

    async def open(self, key: str) -> None:
        await self.keys(key)
        await self.until(lambda: "WAITED" in self.text and self.has_read())

    @property
    def lanes(self) -> LaneList:
        return self.app.screen.query_one(LaneList)

    def lane(self, name: str) -> str:
        found = [line for line in self.lines if line[2:].startswith(f"{name} ")]
        assert len(found) == 1, self.text
        return found[0]


@asynccontextmanager
async def live(
    past: FixedPast | None = None, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[Live]:
    past = past or relay()
    newest: Snapshot = past.snapshot_at(past.times_ns()[-1])
    clock, feed = [0.0], HandFeed(newest)
    app = LocktopApp(
        feed, "night", moments=past, environ={"TERM": "xterm-256color"}, now=lambda: clock[0]
    )
    async with app.run_test(size=size) as pilot:
        screen = Live(app, pilot, feed, clock)
        await screen.settle()
        yield screen
