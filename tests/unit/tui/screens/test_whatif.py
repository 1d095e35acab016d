"""The screen of predictions, driven by keys over answers made by hand."""

from __future__ import annotations

import threading

import pytest
from msgspec.structs import replace
from support.driven import Screen, opened
from support.eventually import PATIENCE_S
from unit.builders import scenarios

from locktop.collector.model import (
    Change,
    ChangeKind,
    LockPressureShare,
    Prediction,
    WhatIf,
    WhatIfRefusal,
)
from locktop.collector.recording.whatif import Answered
from locktop.tui.screens.whatif import WhatIfScreen

SNAPSHOT = scenarios.normal()
LOCK = SNAPSHOT.locks[0]
FOUND = WhatIf(
    span_s=10.0,
    parts=8,
    rounds_per_s=5821.0,
    unit=0,
    replayed=1.01,
    refusal=None,
    predictions=(
        Prediction(Change(ChangeKind.SPLIT, 8.0, LOCK.id), 3.5, 3.17, 3.78, 3.9),
        Prediction(Change(ChangeKind.HOLD, 0.5, LOCK.id), 1.95, 1.81, 2.05, 2.05),
        Prediction(Change(ChangeKind.THREADS, 4.0, group="worker"), 0.91, 0.89, 0.94, 0.95),
    ),
    pressure=(LockPressureShare(LOCK.id, 0.7, (0.7,) * 8, 0.5),),
    cpus=2,
    cpus_used=0.12,
)


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
        assert "No prediction: the throughput changes within the span" in screen.text


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
