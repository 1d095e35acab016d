"""The process picker: its rows, its advice, and what Enter does."""

from __future__ import annotations

import pytest
from support.driven import settle
from support.feed import text_of

from locktop.collector.errors import LocktopError
from locktop.collector.linux.ptrace_access import HOW_TO_PRELOAD
from locktop.collector.sources.base import Source
from locktop.collector.sources.discover import Candidate
from locktop.tui.screens.process_picker import PickerApp

UNPREPARED = Candidate(
    1, "init", "/sbin/init", "root", 1, False, f"it runs without the library; {HOW_TO_PRELOAD}"
)
STATIC = Candidate(
    88,
    "tool",
    "tool --serve",
    "app",
    2,
    False,
    "it is statically linked, so no library can be preloaded into it",
)


def refuse(pid: int) -> Source:
    raise LocktopError(f"no such process: {pid}")


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_the_picker_says_why_no_process_is_ready(size: tuple[int, int]) -> None:
    app = PickerApp(lambda: [UNPREPARED, STATIC], refuse, "night")
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        lines = text_of(app).splitlines()
        assert lines[1].startswith(" No process runs with the library. Enter ")
        assert "; locktop run" in lines[1]
        assert any("0 of 2 run with the library" in line for line in lines)
        (init,) = (line for line in lines if "/sbin/init" in line)
        assert "runs without the" in init
        (tool,) = (line for line in lines if "tool --serve" in line)
        assert "statically linked" in tool
        assert all(len(line) <= size[0] for line in lines)


async def test_the_picker_shows_a_refusal_and_stays() -> None:
    app = PickerApp(lambda: [UNPREPARED, STATIC], refuse, "night")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("down", "enter")
        await settle(pilot)
        assert "no such process: 88" in text_of(app)
        assert app.is_running
