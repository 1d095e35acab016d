"""The screen of predictions, driven by keys over answers made by hand."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.driven import Screen, opened
from support.eventually import PATIENCE_S
from unit.builders.predicted import FOUND, LOCK, SNAPSHOT

from locktop.collector.model import (
    Change,
    ChangeKind,
    RefusedChange,
    ThroughputUnit,
    UnitKind,
    WhatIf,
    WhatIfRefusal,
)
from locktop.collector.recording.whatif import Answered
from locktop.tui.screens.whatif import WhatIfScreen


def row(screen: Screen, text: str) -> list[str]:
    return next(line for line in screen.lines if text in line).split()


async def predicted(screen: Screen, answered: WhatIf) -> None:
    screen.feed.answered = Answered(answered, SNAPSHOT)
    await screen.keys("U")
    assert isinstance(screen.app.screen, WhatIfScreen)
    assert "Enter records all holds for 10 s" in screen.text
    await screen.keys("enter")
    await screen.app.workers.wait_for_complete()
    await screen.pilot.pause()


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        (ThroughputUnit(kind=UnitKind.ROUNDS), "5,821 rounds a second"),
        (ThroughputUnit(kind=UnitKind.LOCK, lock=LOCK.id), "5,821 acquisitions a second"),
        (ThroughputUnit(kind=UnitKind.MARKS, mark="commit"), "5,821 transactions a second"),
    ],
)
async def test_the_unit_is_named(unit: ThroughputUnit, said: str) -> None:
    async with opened(SNAPSHOT) as screen:
        await predicted(screen, replace(FOUND, unit=unit))
        assert said in screen.text


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_changes_are_ranked_with_their_intervals(size: tuple[int, int]) -> None:
    async with opened(SNAPSHOT, size=size) as screen:
        await predicted(screen, FOUND)
        assert row(screen, "split by 8")[:2] == ["+250", "%"]
        assert "+217 to +278 %" in screen.text
        assert row(screen, "hold half as long")[:2] == ["+95", "%"]
        assert row(screen, "worker: 4 threads")[:2] == ["-9", "%"]
        assert "5,821 rounds a second" in screen.text
        assert "replay +1 % without a change" in screen.text


async def test_a_refusal_says_why() -> None:
    async with opened(SNAPSHOT) as screen:
        refused = replace(FOUND, refusal=WhatIfRefusal.PHASES, predictions=())
        await predicted(screen, refused)
        assert "No prediction (phases): the throughput changes within the span" in screen.text


async def test_a_change_that_is_refused_has_its_own_line() -> None:
    async with opened(SNAPSHOT) as screen:
        change = Change(ChangeKind.THREADS, 8.0, group="pool")
        refused = RefusedChange(change, WhatIfRefusal.STOPPED)
        await predicted(screen, replace(FOUND, refused=(refused,)))
        assert "pool: 8 threads: no prediction (stopped replay): after the change" in screen.text
        assert row(screen, "split by 8")[:2] == ["+250", "%"]


async def test_a_process_that_cannot_be_recorded_is_refused_in_one_line() -> None:
    async with opened(SNAPSHOT) as screen:
        screen.feed.refusal = "whatif needs the library"
        await screen.keys("U", "enter")
        await screen.app.workers.wait_for_complete()
        await screen.pilot.pause()
        assert "whatif needs the library" in screen.text
        assert "Enter records all holds" in screen.text


async def test_the_filter_keeps_some_changes() -> None:
    async with opened(SNAPSHOT) as screen:
        await predicted(screen, FOUND)
        await screen.keys("/", *"threads", "enter")
        assert "worker: 4 threads" in screen.text
        assert "split by 8" not in screen.text


async def test_escape_goes_back_to_the_locks() -> None:
    async with opened(SNAPSHOT) as screen:
        await predicted(screen, FOUND)
        await screen.keys("escape")
        assert not isinstance(screen.app.screen, WhatIfScreen)


async def test_the_screen_ends_while_a_prediction_goes_on() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def what_if(duration_s: float) -> Answered:
        begun.set()
        may_end.wait()
        return Answered(FOUND, SNAPSHOT)

    async with opened(SNAPSHOT) as screen:
        screen.feed.what_if = what_if  # type: ignore[method-assign]
        await screen.keys("U", "enter")
        assert begun.wait(PATIENCE_S)
        assert "Recording all holds" in screen.text
        await screen.keys("q")
    assert not screen.app.is_running
    may_end.set()


async def saved(screen: Screen, key: str, directory: Path) -> str:
    """Return the file that a key of the list of locks saves."""
    before = set(directory.iterdir())
    await screen.keys(key)
    await screen.says("Saved ")
    [path] = set(directory.iterdir()) - before
    return path.read_text()


async def test_a_saved_snapshot_has_the_newest_predictions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(SNAPSHOT) as screen:
        assert json.loads(await saved(screen, "w", tmp_path))["whatif"] is None
        await predicted(screen, FOUND)
        await screen.keys("escape")
        whatif = json.loads(await saved(screen, "w", tmp_path))["whatif"]
        assert [one["ratio"] for one in whatif["predictions"]] == [3.5, 1.95, 0.91]
        assert whatif["taken_at"] == FOUND.taken_at
        text = await saved(screen, "W", tmp_path)
        assert f"of records until {FOUND.taken_at}" in text
        assert "worker: 4 threads" in text


async def test_predictions_of_another_program_are_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(SNAPSHOT) as screen:
        await predicted(screen, FOUND)
        await screen.keys("escape")
        process = replace(SNAPSHOT.process, counted_since="2026-11-21T10:01:00.000Z")
        await screen.show(replace(SNAPSHOT, process=process))
        assert json.loads(await saved(screen, "w", tmp_path))["whatif"] is None
