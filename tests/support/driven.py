"""The screen under test, over snapshots that a test builds: its text and its keys."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from msgspec.structs import replace
from textual.pilot import Pilot
from unit.builders import scenarios

from locktop.collector.model import Snapshot
from locktop.collector.recording.moments import Moments
from locktop.tui.app import LocktopApp
from locktop.tui.input_options import DEFAULT_INPUT, InputOptions
from locktop.tui.screen_start import ScreenStart
from locktop.tui.themed_app import ThemedApp
from locktop.tui.widgets.details import Details
from locktop.tui.widgets.item_list import ItemList
from locktop.tui.widgets.strip_cache import CURSOR, CURSOR_ELSEWHERE
from support.feed import HandFeed, strips_of, text_of
from support.settled import wait_until_drawn

#: A guard against changes that never come; a machine with a load of twenty takes long.
PATIENCE_S = 300.0


async def settle(pilot: Pilot[int]) -> None:
    """Wait until a screen has drawn all changes: a layout may cause another layout."""
    await wait_until_drawn(pilot.app)


async def says(app: ThemedApp[int], pilot: Pilot[int], text: str, *, wanted: bool = True) -> None:
    """Wait until the screen shows ``text``, or shows it no more."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if (text in text_of(app).replace("\n", "")) is wanted:
            return
        await pilot.pause()
    state = "not on" if wanted else "still on"
    raise AssertionError(f"{text!r} is {state} the screen:\n{text_of(app)}")


@dataclass
class Screen:
    """The app under test; the test controls its feed and its clock."""

    app: ThemedApp[int]
    pilot: Pilot[int]
    feed: HandFeed
    clock: list[float]

    async def keys(self, *keys: str) -> None:
        """Press keys, and wait after each until the screen has drawn the effect."""
        for key in keys:
            await self.pilot.press(key)
            await self.settle()

    async def settle(self) -> None:
        """Wait until the screen has drawn all changes."""
        await settle(self.pilot)

    async def show(self, snapshot: Snapshot, after_s: float = 1.0) -> None:
        self.clock[0] += after_s
        self.feed.publish(snapshot)
        await self.settle()

    async def says(self, text: str) -> None:
        """Wait until the screen shows ``text``; toasts come a few messages later."""
        await says(self.app, self.pilot, text)

    async def reaches(self, state: Callable[[], bool]) -> None:
        """Wait until ``state`` returns true."""
        deadline = time.monotonic() + PATIENCE_S
        while not state():
            assert time.monotonic() < deadline, "a state that never came"
            await self.pilot.pause()

    async def says_no_more(self, text: str) -> None:
        """Wait until the screen does not show ``text``."""
        await says(self.app, self.pilot, text, wanted=False)

    async def resize(self, width: int, height: int) -> None:
        """Resize the terminal to another height, and wait until the screen has that height."""
        await self.pilot.resize_terminal(width, height)
        while len(strips_of(self.app)) != height:
            await self.pilot.pause()
        await self.settle()

    @property
    def text(self) -> str:
        return text_of(self.app)

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def first(self) -> str:
        """The first line: the views."""
        return self.lines[0]

    @property
    def status(self) -> str:
        """The line of the process, with the state of the screen."""
        return self.lines[1]

    @property
    def headline(self) -> str:
        """The line below that of the process."""
        return self.lines[2]

    @property
    def locks(self) -> ItemList:
        return self.app.screen.query_one("#locks", ItemList)

    @property
    def threads(self) -> ItemList:
        return self.app.screen.query_one("#threads", ItemList)

    @property
    def details(self) -> Details:
        return self.app.screen.query_one("#details", Details)

    def names(self, title: str) -> list[str]:
        """Return the first column of the list with this column title."""
        lines = self.lines
        start = next(i for i, line in enumerate(lines) if line.startswith(f" {title} "))
        names = []
        for line in lines[start + 1 :]:
            if not line.strip() or line.startswith(("─", "▶")):
                break
            names.append(line[1:].split("  ")[0].split(" mutex")[0])
        return names


@asynccontextmanager
async def opened(
    *snapshots: Snapshot,
    size: tuple[int, int] = (120, 40),
    theme: str = "night",
    is_own_program: bool = False,
    leave_running: Callable[[], None] | None = None,
    moments: Moments | None = None,
    input_options: InputOptions = DEFAULT_INPUT,
    start: ScreenStart | None = None,
) -> AsyncIterator[Screen]:
    clock = [0.0]
    feed = HandFeed(*(snapshots or (scenarios.normal(),)))
    app = LocktopApp(
        feed,
        theme,
        is_own_program=is_own_program,
        leave_running=leave_running,
        moments=moments,
        input_options=input_options,
        start=start,
        environ={"TERM": "xterm-256color"},
        now=lambda: clock[0],
    )
    async with app.run_test(size=size, notifications=True) as pilot:
        screen = Screen(app, pilot, feed, clock)
        await screen.settle()
        yield screen
    assert feed.stopped


def with_lock(snapshot: Snapshot, id: int, **changes: object) -> Snapshot:
    locks = tuple(replace(lock, **changes) if lock.id == id else lock for lock in snapshot.locks)
    return replace(snapshot, locks=locks)


def row_under_cursor(used: ItemList) -> str:
    """The whole row with the cursor of a list, with the part that does not fit on the screen."""
    row = next(
        number
        for number in range(used.count())
        if used.content_line(number)[1] in (CURSOR, CURSOR_ELSEWHERE)
    )
    return "".join(text for text, _ in used.content_line(row)[0])
