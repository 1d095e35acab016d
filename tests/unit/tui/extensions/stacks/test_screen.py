"""The screen of all stacks driven by keys."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.driven import Screen
from support.feed import HandFeed
from unit.builders import scenarios

from locktop.collector.errors import LocktopError
from locktop.collector.model import Snapshot
from locktop.tui.app import LocktopApp
from locktop.tui.extensions.stacks.screen import StacksScreen
from locktop.tui.screens.monitor import MonitorScreen


class Process:
    """A source whose scans a test lets go on."""

    def __init__(self, *snapshots: Snapshot) -> None:
        self._snapshots = list(snapshots)
        self.may_scan = threading.Event()
        self.may_scan.set()
        self.scans = 0

    def scan(self, resolve: bool = False) -> Snapshot:
        assert resolve
        assert self.may_scan.wait(300.0)
        self.scans += 1
        if not self._snapshots:
            raise LocktopError("process 4711 has ended")
        return self._snapshots.pop(0)


@asynccontextmanager
async def opened(
    *scans: Snapshot, size: tuple[int, int] = (100, 30), source: Process | None = None
) -> AsyncIterator[Screen]:
    clock = [0.0]
    feed = HandFeed(scenarios.deadlock())
    feed.source = source or (Process(*scans) if scans else None)
    app = LocktopApp(feed, "night", environ={"TERM": "xterm-256color"}, now=lambda: clock[0])
    async with app.run_test(size=size) as pilot:
        screen = Screen(app, pilot, feed, clock)
        await screen.settle()
        await screen.keys("a")
        if source is None:
            await screen.says("all stacks at")
        yield screen


async def test_a_key_reads_the_stacks_and_escape_goes_back() -> None:
    async with opened(scenarios.normal()) as screen:
        assert isinstance(screen.app.screen, StacksScreen)
        assert "all stacks at" in screen.status
        assert "waiting" in screen.headline
        await screen.keys("escape")
        assert isinstance(screen.app.screen, MonitorScreen)


async def test_deadlocked_threads_come_first_with_their_stack() -> None:
    async with opened(scenarios.deadlock()) as screen:
        await screen.says("deadlocked")
        await screen.says("take_right")
        rows = [line for line in screen.lines if " deadlocked " in line and "groups" not in line]
        assert rows
        first = next(line for line in screen.lines if line.lstrip().startswith("COUNT"))
        assert " deadlocked " in screen.lines[screen.lines.index(first) + 1]


async def test_the_key_reads_again() -> None:
    async with opened(scenarios.deadlock(), scenarios.normal()) as screen:
        await screen.says("deadlocked")
        await screen.keys("a")
        await screen.says("Read again at")
        assert "deadlocked" not in screen.headline


async def test_keys_save_all_stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(scenarios.normal()) as screen:
        await screen.keys("w")
        await screen.says("Saved ")
        await screen.keys("W")
        # The message may be over before a busy host looks at the screen.
        await screen.reaches(lambda: any(file.read_text() for file in tmp_path.glob("*.txt")))
    (saved,) = tmp_path.glob("locktop-stacks-store-4711-*.json")
    assert json.loads(saved.read_text())["format"] == "locktop.stacks"
    (text,) = tmp_path.glob("locktop-stacks-store-4711-*.txt")
    assert text.read_text().startswith("all stacks of store 4711 on db1")


async def test_a_key_copies_all_stacks() -> None:
    async with opened(scenarios.normal()) as screen:
        await screen.keys("Y")
        await screen.says("Copied all stacks")


async def test_enter_gives_the_stack_the_whole_screen() -> None:
    async with opened(scenarios.normal(), size=(80, 24)) as screen:
        assert "COUNT" in screen.text
        await screen.keys("enter")
        assert "COUNT" not in screen.text
        assert "main.c:9" in screen.text
        await screen.keys("escape")
        assert "COUNT" in screen.text


async def test_the_filter_goes_by_functions_too() -> None:
    async with opened(scenarios.normal()) as screen:
        await screen.keys("slash", *"queue_take", "enter")
        assert "queue_take" in screen.text
        assert "worker" not in "".join(screen.lines[4:8])


async def test_of_a_moment_without_a_process_there_is_what_the_scan_has_read() -> None:
    async with opened() as screen:
        await screen.keys("a")
        await screen.says("These are the stacks of a past scan")


async def test_a_process_that_cannot_be_read_gives_a_message() -> None:
    async with opened(source=Process()) as screen:
        await screen.says("No stacks: process 4711 has ended")
        assert isinstance(screen.app.screen, MonitorScreen)


async def test_the_screen_goes_on_while_the_stacks_are_read() -> None:
    process = Process(scenarios.normal())
    process.may_scan.clear()
    async with opened(source=process) as screen:
        await screen.says("Reading the stacks of all threads")
        await screen.keys("a", "3")
        assert isinstance(screen.app.screen, MonitorScreen)
        process.may_scan.set()
        await screen.says("all stacks at")
        assert process.scans == 1


async def test_locktop_ends_while_the_stacks_are_read() -> None:
    process = Process(scenarios.normal())
    process.may_scan.clear()
    async with opened(source=process) as screen:
        await screen.keys("q")
    process.may_scan.set()


@pytest.mark.parametrize("size", [(40, 24), (80, 24), (200, 60)])
async def test_the_screen_fits_the_terminal(size: tuple[int, int]) -> None:
    many = replace(scenarios.fleet(), deadlocks=())
    async with opened(many, size=size) as screen:
        assert all(len(line) <= size[0] for line in screen.lines)
        assert "COUNT" in screen.text
