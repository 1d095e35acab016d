"""The screen of `locktop listen`: cell by cell that of the process, and what is said between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.driven import opened, settle
from support.eventually import PATIENCE_S, until
from support.feed import strips_of, text_of
from support.screen import Screen
from support.streams import Mouth, streaming
from support.targets import StartTarget
from textual.pilot import Pilot
from textual.strip import Strip
from unit.builders import scenarios

from locktop.collector.extensions.stream import stream_url
from locktop.collector.extensions.stream.listener import Listener
from locktop.collector.model import Snapshot
from locktop.collector.recording.history import History
from locktop.tui.app import LocktopApp
from locktop.tui.extensions.stream.listen_feed import ListenFeed
from locktop.tui.themed_app import ThemedApp

SIZE = (120, 40)


async def until_says(pilot: Pilot[int], text: str, *, says: bool = True) -> None:
    """Wait until the screen shows a text, or no longer shows it."""
    deadline = time.monotonic() + PATIENCE_S
    while (text in text_of(pilot.app)) is not says:
        assert time.monotonic() < deadline, text_of(pilot.app)
        await pilot.pause(0.01)
    await settle(pilot)


async def test_nothing_is_saved_before_the_first_sender(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    listener = Listener(stream_url.parse("udp://127.0.0.1:0", listens=True))
    app = LocktopApp(ListenFeed(listener), "night", environ={"TERM": "xterm-256color"})
    async with app.run_test(size=SIZE) as pilot:
        await until_says(pilot, "WAITING")
        app.on_user_signal()
        await until_says(pilot, "Not saved: there is no snapshot yet")
    assert not list(tmp_path.iterdir())


async def test_the_screen_elsewhere_is_that_of_the_process(tmp_path: Path) -> None:
    made = [replace(scenarios.deadlock(), notes=()), replace(scenarios.normal(), notes=())]
    async with opened(made[0], size=SIZE, moments=History()) as here:
        direct = [cells_of(here.app)]
        await here.show(made[1])
        direct.append(cells_of(here.app))
    history, clock = History(), [0.0]
    listener = Listener(stream_url.parse(f"unix://{tmp_path}/s", listens=True))
    app = LocktopApp(
        ListenFeed(listener, history),
        "night",
        moments=history,
        environ={"TERM": "xterm-256color"},
        now=lambda: clock[0],
    )
    async with app.run_test(size=SIZE) as pilot:
        await until_says(pilot, f"WAITING  for `locktop stream -p PID --to unix://{tmp_path}/s`")
        assert "No thread waits" not in text_of(app)
        mouth = await asyncio.to_thread(Mouth, str(listener.url))
        await sent(pilot, mouth, made[0], "DEADLOCK")
        assert cells_of(app) == direct[0], text_of(app)
        clock[0] += 1.0
        await sent(pilot, mouth, made[1], "DEADLOCK", says=False)
        assert cells_of(app) == direct[1], text_of(app)
        # The memory keeps a snapshot only some time after the one before.
        while len(history.times_ns()) < 2:
            await sent(pilot, mouth, made[1], "DEADLOCK", says=False)
        mouth.end("the process has ended")
        await until_says(pilot, "WAITING  the stream ended: the process has ended")
        assert "g_cache_lock" in text_of(app), "the last snapshot stays"
        await pilot.press("T")
        await until_says(pilot, "up to the end")
        await pilot.press("escape")
        await until_says(pilot, "WAITING  the stream ended")
        await pilot.press("U")
        await until_says(pilot, "No prediction: predictions are made where the process runs")
        await pilot.press("escape")
        await settle(pilot)
        await pilot.press("L")
        await until_says(pilot, "The level is set where the process runs: `locktop ctl -p PID")
        again = await asyncio.to_thread(Mouth, str(listener.url))
        await sent(pilot, again, made[0], "WAITING", says=False)
        again.end()
        await pilot.press("left_square_bracket")
        await until_says(pilot, "PAST")


def cells_of(app: ThemedApp[int]) -> list[Strip]:
    """Return the rows without the first two, the keys, and what depends on the clock.

    The clock moves the pressure, and the graphs from their titles to their axis.
    """
    rows = [row for row in strips_of(app)[2:-1] if not row.text.strip().startswith("pressure")]
    texts = [row.text for row in rows]
    drawn = [number for number, text in enumerate(texts) if "Waits " in text or "-1 min" in text]
    begin, end = (drawn[0], drawn[-1]) if drawn else (0, -1)
    return [row for number, row in enumerate(rows) if not begin <= number <= end]


async def sent(
    pilot: Pilot[int], mouth: Mouth, snapshot: Snapshot, text: str, *, says: bool = True
) -> None:
    """Send a snapshot, and wait until the screen shows it."""
    mouth.say(snapshot)
    await until_says(pilot, text, says=says)


def test_a_terminal_shows_a_process_and_waits_for_the_next(
    start_target: StartTarget, need: Callable[..., Path], tmp_path: Path
) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    target.go_on()
    target.truth()
    url = f"unix://{tmp_path}/s"
    with Screen(need("tmux"), "listen", url) as screen:
        screen.until(lambda text: "WAITING" in text, "no sender yet")
        with streaming(target.pid, url):
            screen.until(lambda text: "DEADLOCK" in text and "WAITING" not in text, "the process")
        screen.until(lambda text: "its sender was stopped" in text, "the end of the stream")
        screen.press("q")
        until(lambda: screen.ended, "the end of the screen")
        assert screen.status() == 0
    assert not (tmp_path / "s").exists()
