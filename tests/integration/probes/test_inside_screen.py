"""A user at the screen reads which functions make the holds of a lock long."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from support.driven import PATIENCE_S, Screen
from support.feed import HandFeed
from support.targets import StartTarget

from locktop.collector.recording.history import History
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.tui.app import LocktopApp
from locktop.tui.feed import PollerFeed

FUNCTIONS = ("takes_most", "takes_some", "takes_little")
SAMPLES, POINTS = 2000, 5.0


class FastFeed(PollerFeed):
    """Takes ten times as many samples as a screen, so that the test takes a few seconds."""

    def __init__(self, source: Source, history: History) -> None:
        super().__init__(source, history)
        self._own_source = source

    def start_part(self, name: str, *arguments: Any) -> None:
        self._own_source.start_part(name, *arguments, 999.0)


async def until(screen: Screen, wanted: str) -> re.Match[str]:
    """Wait until the screen shows a text, and return what was found."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        await screen.pilot.pause(0.1)
        if found := re.search(wanted, screen.text):
            return found
    raise AssertionError(f"{wanted} is not on the screen:\n{screen.text}")


async def test_key_i_shows_the_functions_with_the_shares_that_the_program_measured(
    start_target: StartTarget,
) -> None:
    target = start_target("shares_inside_lock", "compute", flags=("-O2",))
    target.expect("ready")
    history = History()
    feed = FastFeed(attach(target.pid), history)
    app = LocktopApp(feed, "night", environ={}, moments=history)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = Screen(app, pilot, HandFeed(), [0.0])
        await until(screen, r"\*g_outer")
        assert screen.locks.current is not None
        await screen.keys("I")
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            found = await until(screen, r"sampling 999 Hz, ([\d,]+) samples, on CPU +(\d+)%")
            if int(found[1].replace(",", "")) >= SAMPLES:
                break
        shares = {
            name: int((await until(screen, rf" +(\d+)% .* {name} "))[1]) for name in FUNCTIONS
        }
        assert int(found[2]) > 90
        await screen.keys("escape", "enter")
        await until(screen, r"pressure +waits took \d+%")
    target.go_on()
    seconds = target.truth()["cpu_s"]
    truth = [100 * one / sum(seconds) for one in seconds]
    assert list(shares.values()) == pytest.approx(truth, abs=POINTS)


async def test_key_i_says_why_a_process_without_the_library_has_no_samples(
    start_unprepared: StartTarget,
) -> None:
    target = start_unprepared("shares_inside_lock", "sleep")
    target.expect("ready")
    app = LocktopApp(PollerFeed(attach(target.pid)), "night", environ={})
    async with app.run_test(size=(120, 40)) as pilot:
        screen = Screen(app, pilot, HandFeed(), [0.0])
        await until(screen, r"shares_inside_l")
        while screen.locks.current is None:
            await pilot.pause(0.1)
        await screen.keys("I")
        await until(screen, r"known with the library alone")
