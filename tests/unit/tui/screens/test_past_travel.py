"""A replay shows cell by cell what the live screen showed; its keys reach each moment."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.driven import PATIENCE_S, Screen, settle
from support.feed import HandFeed, strips_of
from textual.strip import Strip
from unit.builders import records, scenarios

from locktop.collector.model import Notable, NotableKind, Snapshot, WaitRecord
from locktop.collector.recording.history import History
from locktop.collector.recording.moments import Moments
from locktop.collector.recording.recording import Recording
from locktop.collector.recording.recording_info import RecordingInfo
from locktop.collector.recording.recording_writer import RecordingWriter
from locktop.tui.app import LocktopApp
from locktop.tui.feed import ReplayFeed
from locktop.tui.screens.monitor import MonitorScreen
from locktop.tui.screens.past_travel import PastTravel
from locktop.tui.screens.pressure_reader import PressureReader

_SECOND = 1_000_000_000
_BEGIN = 1_790_000_000 * _SECOND


def _run() -> list[Snapshot]:
    """The scans of a run: calm, busy, deadlocked, ended. Notes have a time of their own."""
    made = [
        scenarios.normal(), scenarios.many(tick=1), scenarios.many(tick=2), scenarios.deadlock(),
        scenarios.calls(3), scenarios.fleet(tick=4), scenarios.pools(), scenarios.orders(),
        records.sampled(scenarios.normal()), scenarios.oversubscribed(), scenarios.empty(),
        scenarios.ended(),
    ]  # fmt: skip
    return [replace(one, notes=()) for one in made]


def _record(path: Path, made: Sequence[Snapshot]) -> Path:
    writer = RecordingWriter(path, RecordingInfo.from_snapshot(made[0], "1.0"), _BEGIN)
    for second, snapshot in enumerate(made):
        writer.add_snapshot(snapshot, _BEGIN + second * _SECOND)
    stuck = Notable(_BEGIN + 3 * _SECOND, NotableKind.DEADLOCK, "deadlock of 3 threads")
    writer.add_notables([stuck], stuck.time_ns)
    writer.finish("the process has ended", _BEGIN + len(made) * _SECOND)
    return path


@asynccontextmanager
async def _opened(
    feed: HandFeed | ReplayFeed, moments: Moments | None, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[Screen]:
    clock = [0.0]
    app = LocktopApp(
        feed,
        "night",
        moments=moments,
        is_replay=isinstance(feed, ReplayFeed),
        environ={"TERM": "xterm-256color"},
        now=lambda: clock[0],
    )
    async with app.run_test(size=size) as pilot:
        hand = feed if isinstance(feed, HandFeed) else HandFeed()
        screen = Screen(app, pilot, hand, clock)
        await screen.settle()
        yield screen


async def _until_status(screen: Screen, text: str) -> None:
    """Another thread reads the moment, so the screen shows it a little later."""
    deadline = time.monotonic() + PATIENCE_S
    while text not in screen.status:
        assert time.monotonic() < deadline, screen.text
        await screen.pilot.pause(0.01)
    await settle(screen.pilot)


class _Memory:
    """The memory of a live screen: the part of a recording up to a moment."""

    def __init__(self, recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
        self._recording = recording
        self.now_ns = _BEGIN
        monkeypatch.setattr(PressureReader, "now_ns", lambda _: self.now_ns)
        monkeypatch.setattr(PastTravel, "now_ns", lambda _: self.now_ns)

    def times_ns(self) -> Sequence[int]:
        return [one for one in self._recording.times_ns() if one <= self.now_ns]

    def snapshot_at(self, time_ns: int) -> Snapshot:
        return self._recording.snapshot_at(time_ns)

    def notables(self) -> Sequence[Notable]:
        return [one for one in self._recording.notables() if one.time_ns <= self.now_ns]

    def records(self, from_ns: int, to_ns: int) -> Sequence[WaitRecord]:
        return ()


async def _past_read(screen: Screen) -> None:
    """Wait until details and overview have the past, which another thread reads."""
    await settle(screen.pilot)
    deadline = time.monotonic() + PATIENCE_S
    visible = screen.app.screen
    while isinstance(visible, MonitorScreen) and (
        visible.pressure.is_reading or visible.activity.is_reading
    ):
        assert time.monotonic() < deadline, screen.text
        await screen.pilot.pause(0.01)
    await settle(screen.pilot)


async def _reached(screen: Screen, time_ns: int) -> None:
    """Wait until the snapshot of a time is on the screen."""
    deadline = time.monotonic() + PATIENCE_S
    while not _shows(screen, time_ns):
        assert time.monotonic() < deadline, screen.text
        await screen.pilot.pause(0.01)
    await _past_read(screen)


def _shows(screen: Screen, time_ns: int) -> bool:
    visible = screen.app.screen
    return isinstance(visible, MonitorScreen) and visible.travel.drawn_ns == time_ns


def _cells(screen: Screen) -> list[Strip]:
    """All lines but the first two, which tell the moment, and the last, which has the keys."""
    return strips_of(screen.app)[2:-1]


@pytest.mark.parametrize(
    ("size", "keys"),
    [
        ((80, 24), ()), ((80, 24), ("i",)),
        ((120, 40), ("tab",)), ((120, 40), ("enter",)), ((120, 40), ("s", "S")),
        ((200, 60), ()), ((200, 60), ("i",)),
    ],
    ids=str,
)  # fmt: skip
async def test_a_replay_is_the_live_screen_cell_by_cell(
    size: tuple[int, int], keys: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, live = _run(), []
    recording = Recording(_record(tmp_path / "r", made))
    memory = _Memory(recording, monkeypatch)
    async with _opened(HandFeed(made[0]), memory, size) as screen:
        await screen.keys(*keys)
        for second, snapshot in enumerate(made):
            memory.now_ns = _BEGIN + second * _SECOND
            await screen.show(snapshot)
            await _past_read(screen)
            live.append(_cells(screen))
    async with _opened(ReplayFeed(), recording, size) as screen:
        await _reached(screen, _BEGIN)
        await screen.keys(*keys)
        for second in range(len(made)):
            await _reached(screen, _BEGIN + second * _SECOND)
            assert _cells(screen) == live[second], (second, screen.text)
            await screen.keys("right_square_bracket")
    recording.close()


async def test_moments_in_any_order_are_those_of_the_live_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is a jump to a time, whatever moment was on the screen before."""
    made, live = _run(), []
    recording = Recording(_record(tmp_path / "r", made))
    memory = _Memory(recording, monkeypatch)
    for second, snapshot in enumerate(made):
        memory.now_ns = _BEGIN + second * _SECOND
        async with _opened(HandFeed(snapshot), memory) as screen:
            await _past_read(screen)
            live.append(_cells(screen))
    async with _opened(ReplayFeed(), recording) as screen:
        for second in random.Random(6).choices(range(len(made)), k=15):
            await screen.keys("colon", *f"+{second}s", "enter")
            await _reached(screen, _BEGIN + second * _SECOND)
            assert _cells(screen) == live[second], (second, screen.text)
    recording.close()


async def test_the_graphs_end_at_the_moment_and_are_those_of_the_live_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def graphs(screen: Screen) -> list[str]:
        begin = next(i for i, line in enumerate(screen.lines) if "Waiting threads" in line)
        end = next(i for i, line in enumerate(screen.lines) if "-2 min" in line)
        return screen.lines[begin:end]

    def axis(screen: Screen) -> str:
        return next(line for line in screen.lines if "-2 min" in line).rstrip()

    made, live = _run(), []
    recording = Recording(_record(tmp_path / "r", made))
    memory = _Memory(recording, monkeypatch)
    async with _opened(HandFeed(made[0]), memory, (80, 24)) as screen:
        await screen.keys("1")
        for second, snapshot in enumerate(made):
            memory.now_ns = _BEGIN + second * _SECOND
            await screen.show(snapshot)
            drawn = graphs(screen)
            await screen.settle()  # a banner that comes takes rows from the graphs
            while drawn != graphs(screen):
                drawn = graphs(screen)
                await screen.settle()
            live.append(drawn)
        assert axis(screen).endswith("  now"), screen.text
        # The memory has what the screen did not show.
        await screen.keys("colon", *"+3s", "enter")
        await _reached(screen, _BEGIN + 3 * _SECOND)
        await screen.reaches(lambda: graphs(screen) == live[3])
        assert axis(screen).endswith("▲ then"), screen.text
    async with _opened(ReplayFeed(), recording, (80, 24)) as screen:
        await screen.keys("1")
        for second in (9, 2, 11):
            await screen.keys("colon", *f"+{second}s", "enter")
            await _reached(screen, _BEGIN + second * _SECOND)
            assert graphs(screen) == live[second], (second, screen.text)
    recording.close()


async def test_keys_of_a_replay_reach_the_alert_and_the_ends(tmp_path: Path) -> None:
    recording = Recording(_record(tmp_path / "r", _run()))
    last = _BEGIN + (len(_run()) - 1) * _SECOND
    async with _opened(ReplayFeed(), recording) as screen:
        await _reached(screen, _BEGIN)
        assert " REPLAY  " in screen.status
        await screen.keys("right_curly_bracket")
        await _reached(screen, _BEGIN + 3 * _SECOND)
        assert "deadlock of 3 threads" in screen.headline
        assert "DEADLOCK" in screen.text
        await screen.keys("end")
        await _reached(screen, last)
        await screen.keys("home")
        await _reached(screen, _BEGIN)
        await screen.keys("colon", *"50%", "enter")
        await _reached(screen, _BEGIN + 5 * _SECOND)
        await screen.keys("L")
        await screen.says("There is no level to set: this is a recording.")
    recording.close()


async def test_a_damaged_snapshot_is_passed_over(tmp_path: Path) -> None:
    """The checksums of a large file are read when its frames are."""
    path = _record(tmp_path / "r", _run())
    recording = Recording(path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] + bytes(8) + data[len(data) // 2 + 8 :])
    async with _opened(ReplayFeed(), recording) as screen:
        await _reached(screen, _BEGIN)
        for second in range(1, len(_run())):
            await screen.keys("right_square_bracket")
            await _reached(screen, _BEGIN + second * _SECOND)
        await screen.says("damaged: ")
        await screen.says("The screen still has the moment before.")
        await screen.keys("left_square_bracket", "home")
        await _reached(screen, _BEGIN)
        assert "g_table_lock" in screen.text
    recording.close()


async def test_the_player_shows_one_moment_after_the_other(tmp_path: Path) -> None:
    recording = Recording(_record(tmp_path / "r", _run()))
    async with _opened(ReplayFeed(), recording) as screen:
        await _reached(screen, _BEGIN)
        assert "End last  p play" in screen.lines[-1]
        await screen.keys("p", "plus")
        await _until_status(screen, "2x")
        assert "p pause" in screen.lines[-1]
        screen.clock[0] += 1.1
        await _reached(screen, _BEGIN + 2 * _SECOND)
        await screen.keys("p")
        assert "2x" not in screen.status
        assert "p play" in screen.lines[-1]
    recording.close()


async def test_the_player_pauses_while_a_screen_over_time_is_open(tmp_path: Path) -> None:
    recording = Recording(_record(tmp_path / "r", _run()))
    async with _opened(ReplayFeed(), recording) as screen:
        await _reached(screen, _BEGIN)
        await screen.keys("p", "T")
        await screen.says("WAITED")
        screen.clock[0] += 5.0
        await screen.keys("escape")
        await _reached(screen, _BEGIN)
        assert "1x" not in screen.status
    recording.close()


async def test_a_live_screen_goes_back_and_returns_while_scans_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    history, made = History(), _run()
    for second, snapshot in enumerate(made[:4]):
        history.add(snapshot, _BEGIN + second * _SECOND)
    async with _opened(HandFeed(made[3]), history) as screen:
        await screen.keys("left_square_bracket")
        await _reached(screen, _BEGIN + 2 * _SECOND)
        before = _cells(screen)
        assert " PAST  " in screen.status
        assert "End now  p play" in screen.lines[-1]
        history.add(made[0], _BEGIN + 4 * _SECOND)
        await screen.show(made[0])
        assert _cells(screen) == before
        await screen.keys("w")
        await screen.says("Saved ")
        await screen.keys("M")
        await screen.says(".recording")
        recording = Recording(next(tmp_path.glob("*.recording")))
        assert list(recording.times_ns()) == list(history.times_ns())
        recording.close()
        saved = json.loads(next(tmp_path.glob("*.json")).read_text())
        assert len(saved["threads"]) == len(made[2].threads) != len(made[3].threads)
        await screen.keys("end")
        assert "PAST" not in screen.status
        assert "g_table_lock" in screen.text


async def test_a_screen_in_the_past_tells_that_the_process_has_ended() -> None:
    history = History()
    for second in range(4):
        history.add(scenarios.normal(), _BEGIN + second * _SECOND)
    async with _opened(HandFeed(scenarios.normal()), history) as screen:
        await screen.keys("left_square_bracket")
        await _until_status(screen, "PAST")
        await screen.show(scenarios.ended())
        await screen.says("The process has ended. End shows its last snapshot.")
        assert " PAST " in screen.status
        await screen.keys("left_square_bracket")
        assert "The process has ended." not in screen.text
        await screen.keys("R")
        await screen.says("there is nothing more to measure")
        await screen.keys("end")
        await _until_status(screen, "ENDED")


async def test_the_call_tree_goes_back_too() -> None:
    history = History()
    for second in range(4):
        history.add(scenarios.calls(second), _BEGIN + second * _SECOND)
    async with _opened(HandFeed(scenarios.calls(3)), history) as screen:
        await screen.keys("c", "left_square_bracket")
        await _until_status(screen, "PAST")
        screen.clock[0] += 60.0
        await screen.keys("left_curly_bracket")
        await screen.says("There is no alert or mark before this.")
        assert "Callers" in screen.text
        await screen.keys("end")
        await screen.says("2 updates/s")
        assert "PAST" not in screen.status


async def test_keys_that_arrive_in_a_burst_end_at_the_right_moment() -> None:
    history, made = History(), _run()
    for second in range(60):
        history.add(replace(made[0], duration_s=float(second)), _BEGIN + second * _SECOND)
    async with _opened(HandFeed(made[0]), history) as screen:
        await screen.pilot.press(*["left_square_bracket"] * 40, *["right_square_bracket"] * 5)
        await _reached(screen, _BEGIN + (59 - 35) * _SECOND)
        await screen.keys("colon", *"+10s", "enter")
        await _reached(screen, _BEGIN + 10 * _SECOND)
        await screen.keys("colon", "escape")
        assert " PAST  " in screen.status


async def test_a_fault_ten_minutes_back_is_found_by_at_most_ten_keys() -> None:
    """The session has two scans a second, and the user looks at it ten minutes later."""
    history = History()
    now_ns = time.time_ns()
    for number in range(2 * 600):
        time_ns = now_ns - (1200 - number) * _SECOND // 2
        stuck = number == 20
        notable = Notable(time_ns, NotableKind.DEADLOCK, "deadlock of 3 threads: a, b, c")
        history.add(
            scenarios.deadlock() if stuck else replace(scenarios.normal(), duration_s=number / 2),
            time_ns,
            notables=[notable] if stuck else [],
        )
    async with _opened(HandFeed(scenarios.normal()), history) as screen:
        await screen.show(scenarios.normal())
        assert "1 alert (key {)" in screen.status
        await screen.keys("left_curly_bracket")
        await _until_status(screen, "PAST")
        # A busy machine takes time until here.
        assert re.search(r"-(9|1\d) min", screen.status)
        await screen.keys("d")
        await screen.says("DEADLOCK")
        assert "philosopher-0" in screen.text


async def test_the_moment_on_the_screen_gets_the_names_that_come_later() -> None:
    named, history = scenarios.normal(), History()
    hot = named.locks[0]
    address = f"mutex {hot.address:#x}"
    unnamed = replace(named, names_left=5, locks=(replace(hot, name=address), *named.locks[1:]))
    text = f"reader waits 1.27 s for {address}, held by journal"
    alert = Notable(_BEGIN, NotableKind.WAIT, text, tid=hot.waiters[0], lock=hot.id)
    history.add(unnamed, _BEGIN, notables=[alert])
    async with _opened(HandFeed(unnamed), history) as screen:
        await screen.keys("left_curly_bracket")
        await _reached(screen, _BEGIN)
        assert address in screen.headline
        assert address in screen.names("LOCK")
        for second in (1, 2, 3):  # on a busy machine names take a while
            history.scanned(unnamed, _BEGIN + second * _SECOND)
            await screen.show(unnamed)
        history.scanned(named, _BEGIN + 9 * _SECOND)
        await screen.show(named, after_s=6.0)
        await screen.reaches(lambda: hot.name in screen.names("LOCK"))
        assert f" for {hot.name}, held by journal" in screen.headline
        assert " PAST " in screen.status


async def test_a_moment_on_the_screen_stays_after_the_memory_has_forgotten_it() -> None:
    class Counted(History):
        """A memory that counts how often it was read."""

        reads = 0

        def snapshot_at(self, time_ns: int) -> Snapshot:
            self.reads += 1
            return super().snapshot_at(time_ns)

    history, made = Counted(span_s=1.0), _run()
    for second in range(2):
        history.add(made[0], _BEGIN + second * _SECOND)
    async with _opened(HandFeed(made[0]), history) as screen:
        await screen.keys("left_square_bracket")
        await _reached(screen, _BEGIN)
        before = _cells(screen)
        for second in range(2, 200):
            history.add(made[3], _BEGIN + second * _SECOND)
        assert history.times_ns()[0] > _BEGIN
        reads = history.reads
        await screen.show(made[3])
        await screen.reaches(lambda: history.reads > reads)
        await _past_read(screen)
        assert _cells(screen) == before
