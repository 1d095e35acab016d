"""The process picker: its rows, its advice, and what Enter does."""

from __future__ import annotations

import pytest
from support.driven import settle
from support.feed import text_of

from locktop.collector.errors import LocktopError
from locktop.collector.linux.ptrace_access import HOW_TO_PRELOAD
from locktop.collector.sources.base import Source
from locktop.collector.sources.discover import Candidate
from locktop.collector.sources.stuck_survey import StuckThreads
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


def ready(pid: int, threads: int) -> Candidate:
    return Candidate(pid, f"app-{pid}", f"app-{pid} --serve", "app", threads, True, "")


def refuse(pid: int) -> Source:
    raise LocktopError(f"no such process: {pid}")


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_the_picker_says_why_no_process_is_ready(size: tuple[int, int]) -> None:
    app = PickerApp(lambda: [UNPREPARED, STATIC], refuse, "night")
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        lines = text_of(app).splitlines()
        assert lines[1].startswith(" No process runs with the library.")
        assert "locktop run -- COMMAND" in lines[2]
        assert lines[3].startswith(" Enter watches one without it")
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


async def test_the_most_stuck_process_is_the_first_row() -> None:
    stuck = {
        7: StuckThreads(0, 0.0),
        8: StuckThreads(3, 2.5),
        9: StuckThreads(2, 1.0, "certain"),
        10: None,
    }
    found = [ready(pid, threads=pid) for pid in stuck]
    app = PickerApp(lambda: [*found, STATIC], refuse, "night", stuck.get)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.app.workers.wait_for_complete()
        await settle(pilot)
        rows = [line for line in text_of(app).splitlines() if "--serve" in line]
        assert [row.split()[0] for row in rows] == ["9", "8", "7", "10", "88"]
        assert "DEADLOCK" in rows[0]
        assert rows[1].split()[1:3] == ["3", "2.50s"]
        assert rows[3].split()[1:3] == ["-", "-"]
