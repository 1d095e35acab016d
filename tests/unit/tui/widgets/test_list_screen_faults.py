"""A fault in the work of a screen is one line, and messages do not outstay the next key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.driven import Screen, opened, settle
from support.feed import HandFeed
from unit.builders import scenarios
from unit.builders.time_lines import relay

from locktop.collector.model import TimeLine
from locktop.collector.recording.history import History
from locktop.collector.recording.time_lines import TimeLineReader
from locktop.tui.app import LocktopApp
from locktop.tui.screens.heat_map import HeatMapScreen
from locktop.tui.screens.monitor import MonitorScreen
from locktop.tui.screens.timeline import TimelineScreen

_SECOND = 1_000_000_000
_BEGIN = 1_790_000_000 * _SECOND


def _fail(*_: object) -> TimeLine:
    raise KeyError("a lock of nobody")


@asynccontextmanager
async def _live(moments: object) -> AsyncIterator[Screen]:
    clock, feed = [0.0], HandFeed(scenarios.normal())
    app = LocktopApp(
        feed,
        "night",
        moments=moments,  # type: ignore[arg-type]
        environ={"TERM": "xterm-256color"},
        now=lambda: clock[0],
    )
    async with app.run_test(size=(100, 30)) as pilot:
        screen = Screen(app, pilot, feed, clock)
        await settle(pilot)
        yield screen


def _history() -> History:
    history = History()
    for second in range(4):
        history.add(scenarios.normal(), _BEGIN + second * _SECOND)
    return history


async def _survives(screen: Screen) -> None:
    await screen.says("fault: KeyError: 'a lock of nobody'")
    assert screen.app.is_running


def _printed_once(screen: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    """The app prints at its end, when the terminal is no longer the screen's."""
    screen.app.print_faults()
    printed = capsys.readouterr().err
    assert printed.count("Traceback (most recent call last):") == 1
    assert "in _fail" in printed


async def test_a_fault_while_a_moment_is_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    history = _history()
    monkeypatch.setattr(history, "snapshot_at", _fail)
    async with _live(history) as screen:
        await screen.keys("left_square_bracket")
        await _survives(screen)
        assert "The screen still has the moment before." in screen.text.replace("\n", "")
        monkeypatch.undo()
        await screen.keys("left_square_bracket")
        monitor = screen.app.screen
        assert isinstance(monitor, MonitorScreen)
        while monitor.travel.drawn_ns != _BEGIN + _SECOND:
            await screen.pilot.pause(0.01)
    _printed_once(screen, capsys)


@pytest.mark.parametrize("key", ["T", "H"])
async def test_a_fault_of_a_screen_over_time(
    key: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(TimeLineReader, "read", _fail)
    async with _live(relay()) as screen:
        await screen.keys(key)
        await _survives(screen)
        monkeypatch.undo()
        await screen.keys("minus")
        await screen.says("WAITED")
    _printed_once(screen, capsys)


async def test_a_fault_while_the_callers_of_a_span_are_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with _live(relay()) as screen:
        await screen.keys("H")
        await screen.says("WAITED")
        monkeypatch.setattr(TimeLineReader, "read", _fail)
        await screen.keys("c")
        await _survives(screen)
        assert isinstance(screen.app.screen, HeatMapScreen)
    _printed_once(screen, capsys)


@pytest.mark.parametrize(
    ("name", "keys"), [("session", ["R"]), ("set_level", ["L", "down", "enter", "y"])]
)
async def test_a_fault_of_the_feed(
    name: str,
    keys: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with _live(None) as screen:
        monkeypatch.setattr(screen.feed, name, _fail)
        await screen.keys(*keys)
        await _survives(screen)
    _printed_once(screen, capsys)


async def test_a_fault_while_a_file_is_saved(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("locktop.tui.screens.monitor.save_snapshot", _fail)
    async with _live(None) as screen:
        await screen.keys("w")
        await screen.says("Not saved: fault: KeyError")
        await _survives(screen)
    _printed_once(screen, capsys)


async def test_a_message_goes_at_the_next_key() -> None:
    async with opened() as screen:
        await screen.keys("d")
        await screen.says("There is no deadlock.")
        await screen.keys("down")
        assert "There is no deadlock." not in screen.text
        assert " ? help" in screen.lines[-1]


async def test_a_message_is_replaced_by_the_message_of_the_next_key() -> None:
    async with opened() as screen:
        await screen.keys("d", "d")
        await screen.says("There is no deadlock.")


async def test_an_error_outlasts_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened() as screen:
        screen.feed.refusal = "the process has ended"
        await screen.keys("L", "down", "enter", "y")
        await screen.says("the process has ended")
        await screen.keys("down")
        assert "the process has ended" in screen.text


def _monitor_time(screen: Screen) -> int | None:
    below = screen.app.screen_stack[0]
    assert isinstance(below, MonitorScreen)
    return below.past.time_ns


async def test_keys_of_the_past_do_not_move_the_monitor_below_the_callers_of_a_span() -> None:
    async with _live(relay()) as screen:
        await screen.keys("H")
        await screen.says("WAITED")
        await screen.keys("c")
        await screen.says("callers of ")
        await screen.keys("left_square_bracket", "left_curly_bracket")
        assert _monitor_time(screen) is None


async def test_a_time_screen_that_cannot_open_leaves_the_monitor_drawn() -> None:
    """A memory may lose its snapshots while the time line is on the screen."""
    past = relay()
    async with _live(past) as screen:
        await screen.keys("T")
        await screen.says("WAITED")
        assert isinstance(screen.app.screen, TimelineScreen)
        past.snapshots.clear()
        await screen.keys("H")
        await screen.says("there is no second one yet")
        assert isinstance(screen.app.screen, MonitorScreen)
        await screen.show(scenarios.deadlock())
        assert "DEADLOCK" in screen.text
