"""The screen of predictions, driven by keys over answers made by hand."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

import pytest
from msgspec.structs import replace
from support import driven
from support.driven import Screen, settle
from support.eventually import PATIENCE_S
from support.feed import text_of
from textual.pilot import Pilot
from unit.builders import scenarios
from unit.builders.predicted import FOUND, LOCK, SNAPSHOT
from unit.builders.time_lines import FixedPast, at, relay

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.whatif import answers, text_report
from locktop.collector.extensions.whatif.answers import Answered
from locktop.collector.extensions.whatif.model import (
    Change,
    ChangeKind,
    Progress,
    RefusedChange,
    ThroughputUnit,
    UnitKind,
    WhatIf,
    WhatIfRefusal,
)
from locktop.collector.model import Snapshot
from locktop.tui.app import LocktopApp
from locktop.tui.extensions.whatif.screen import WhatIfScreen
from locktop.tui.feed import ReplayFeed
from locktop.tui.views.past_flag import clock_text

Tell = Callable[[Progress], None]
RECORDED = Progress(is_recorded=True, part=0.0)


def row(screen: Screen, text: str) -> list[str]:
    return next(line for line in screen.lines if text in line).split()


class HandSource:
    """A process whose predictions a test makes by hand."""

    def __init__(self) -> None:
        self.answered: Answered | None = None
        self.refusal = ""  # the reason that there is no prediction
        self.calls = 0

    def scan(self) -> Snapshot:
        return SNAPSHOT

    def predict(self, on_progress: Tell) -> Answered:
        self.calls += 1
        if self.answered is None:
            raise LocktopError(self.refusal)
        on_progress(RECORDED)
        return self.answered


@pytest.fixture(autouse=True)
def _answers_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    def predict_process(
        source: HandSource,
        pid: int,
        duration_s: float,
        wanted: object,
        done: Tell,
    ) -> Answered:
        return source.predict(done)

    monkeypatch.setattr(answers, "predict_process", predict_process)


@asynccontextmanager
async def opened(snapshot: Snapshot, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Screen]:
    async with driven.opened(snapshot, size=size) as screen:
        screen.feed.source = HandSource()
        yield screen


async def predicted(screen: Screen, answered: WhatIf) -> None:
    screen.feed.source.answered = Answered(answered, SNAPSHOT)
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


async def test_a_deadlock_is_refused_before_the_recording() -> None:
    stuck = scenarios.deadlock()
    still = tuple(
        replace(lock, rates=replace(lock.rates, acquisitions=0.0)) for lock in stuck.locks
    )
    async with opened(replace(stuck, locks=still)) as screen:
        await screen.keys("U")
        assert "No prediction: nothing goes on at the locks" in " ".join(screen.text.split())
        assert "Enter records" not in screen.text
        await screen.keys("enter")
        assert screen.feed.source.calls == 0


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
        refused = replace(
            FOUND,
            refusal=WhatIfRefusal.PHASES,
            predictions=(),
            changed_at="2026-11-21T03:12:45.000+00:00",
        )
        await predicted(screen, refused)
        said = "No prediction (phases): the program changed its behaviour at about 04:12:45; try"
        assert re.sub(r"\d\d(?=:\d\d:45)", "04", screen.text).count(said) == 1
        assert "try again in a steady minute" in screen.text


async def test_the_screen_says_what_it_will_do_and_cost_and_waits() -> None:
    for size in ((40, 24), (80, 24)):
        async with opened(SNAPSHOT, size=size) as screen:
            await screen.keys("U")
            said = " ".join(screen.text.split())
            assert "the level becomes all" in said
            assert "each call for a lock takes longer" in said
            assert "Enter records all holds for 10 s" in said
            assert screen.feed.source.calls == 0


async def test_a_bar_says_how_far_it_is_and_what_is_known_so_far() -> None:
    async with opened(SNAPSHOT) as screen:
        slow = SlowPrediction(screen)
        await screen.keys("U", "enter")
        slow.has_begun()
        slow.progress(Progress(is_recorded=False, part=0.5, learned="1,234 waits"))
        slow.progress(Progress(is_recorded=True, part=0.25, learned="index_mu: split by 8 +250 %"))
        await screen.says("Replaying each change")
        assert " 25%  best so far: index_mu: split by 8 +250 %" in screen.text
        assert "the level becomes all" not in screen.text
        await slow.end()


async def test_a_change_that_is_refused_has_its_own_line() -> None:
    async with opened(SNAPSHOT) as screen:
        change = Change(ChangeKind.THREADS, 8.0, group="pool")
        refused = RefusedChange(change, WhatIfRefusal.STOPPED)
        await predicted(screen, replace(FOUND, refused=(refused,)))
        assert "pool: 8 threads: no prediction (stopped replay): after the change" in screen.text
        assert row(screen, "split by 8")[:2] == ["+250", "%"]


async def test_a_process_that_cannot_be_recorded_is_refused_in_one_line() -> None:
    async with opened(SNAPSHOT) as screen:
        screen.feed.source.refusal = "whatif needs the library"
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


class SlowPrediction:
    """A recording and a replay that end when a test says so."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._begun, self._may_record, self._may_end = (threading.Event() for _ in range(3))
        self.fault: Exception | None = None
        self.progress: Tell = lambda progress: None
        screen.feed.source.predict = self._predict

    def _predict(self, on_progress: Tell) -> Answered:
        self._begun.set()
        self.progress = on_progress
        assert self._may_record.wait(PATIENCE_S)
        on_progress(RECORDED)
        assert self._may_end.wait(PATIENCE_S)
        if self.fault is not None:
            raise self.fault
        return Answered(FOUND, SNAPSHOT)

    def has_begun(self) -> None:
        assert self._begun.wait(PATIENCE_S)

    def end_recording(self) -> None:
        self._may_record.set()

    async def end(self, fault: Exception | None = None) -> None:
        self.fault = fault
        self._may_record.set()
        self._may_end.set()
        await self._screen.app.workers.wait_for_complete()
        await self._screen.settle()


async def test_the_screen_ends_while_a_prediction_goes_on() -> None:
    async with opened(SNAPSHOT) as screen:
        slow = SlowPrediction(screen)
        await screen.keys("U", "enter")
        slow.has_begun()
        assert "Recording all holds" in screen.text
        await screen.keys("q")
    assert not screen.app.is_running
    slow.end_recording()


@pytest.mark.parametrize("before", [(), ("p",)], ids=["running", "paused"])
async def test_each_scan_counts_the_seconds_down(before: tuple[str, ...]) -> None:
    async with opened(SNAPSHOT) as screen:
        slow = SlowPrediction(screen)
        await screen.keys(*before, "U", "enter")
        slow.has_begun()
        assert re.search(r"Recording all holds .*, 11 s left", screen.text)
        await screen.show(SNAPSHOT, after_s=2.5)
        assert re.search(r"Recording all holds .*, 9 s left", screen.text)
        await screen.show(SNAPSHOT, after_s=60.0)
        assert re.search(r"Recording all holds .*, 0 s left", screen.text)
        slow.end_recording()
        await screen.says("Replaying each change")
        assert "Recording" not in screen.text
        await slow.end()
        assert "Replaying" not in screen.text
        assert "split by 8" in screen.text


async def test_escape_lets_the_recording_go_on() -> None:
    async with opened(SNAPSHOT) as screen:
        slow = SlowPrediction(screen)
        await screen.keys("U", "enter", "escape")
        slow.has_begun()
        assert "The recording at the level all goes on for 11 s" in screen.text
        screen.clock[0] += 4.0
        await screen.keys("U")
        assert re.search(r"Recording all holds .*, 7 s left", screen.text)
        await screen.keys("enter")  # goes on alone
        slow.end_recording()
        await screen.says("Replaying each change")
        await screen.keys("escape")
        assert "The prediction goes on; U shows it." in screen.text
        await slow.end()
        assert "What if: the predictions are ready; U shows them." in screen.text
        await screen.keys("U")
        assert "split by 8" in screen.text


async def test_a_failure_after_escape_gives_a_message() -> None:
    async with opened(SNAPSHOT) as screen:
        slow = SlowPrediction(screen)
        await screen.keys("U", "enter", "escape")
        await slow.end(LocktopError("process 4711 ended while its locks were recorded"))
        assert "What if: process 4711 ended while its locks were recorded" in screen.text
        await screen.keys("U")
        assert "No prediction: process 4711 ended while its locks were recorded." in screen.text


async def test_an_end_of_the_process_has_a_line_beside_the_predictions_before() -> None:
    async with opened(SNAPSHOT) as screen:
        await predicted(screen, FOUND)
        slow = SlowPrediction(screen)
        await screen.keys("enter")
        await screen.show(replace(SNAPSHOT, ended=True))
        assert "No prediction: process 4711 has ended." in screen.text
        assert "Recording all holds" not in screen.text
        await slow.end(ProcessLookupError(3, "No such process"))
        assert "No prediction: no such process." in screen.text
        assert "Enter records" not in screen.text
        assert "split by 8" in screen.text


async def test_the_newest_predictions_stay_with_their_time() -> None:
    async with opened(SNAPSHOT) as screen:
        await predicted(screen, FOUND)
        await screen.keys("escape", "U")
        assert "split by 8" in screen.text
        taken = datetime.fromisoformat(FOUND.taken_at).astimezone()
        assert f"Measured for 10.0 s until {taken:%H:%M:%S}." in screen.text
        screen.feed.source.answered = Answered(replace(FOUND, rounds_per_s=17.0), SNAPSHOT)
        await screen.keys("enter")
        await screen.says("17 rounds a second")


async def test_predictions_of_an_ended_process_stay() -> None:
    async with opened(SNAPSHOT) as screen:
        await predicted(screen, FOUND)
        await screen.show(replace(SNAPSHOT, ended=True))
        assert "No newer ones: process 4711 has ended." in screen.text
        assert "No prediction" not in screen.text
        assert "split by 8" in screen.text


async def test_predictions_of_another_program_are_hidden() -> None:
    async with opened(SNAPSHOT) as screen:
        await predicted(screen, FOUND)
        await screen.keys("escape")
        process = replace(SNAPSHOT.process, counted_since="2026-11-21T10:01:00.000Z")
        await screen.show(replace(SNAPSHOT, process=process))
        await screen.keys("U")
        assert "split by 8" not in screen.text
        assert "Enter records all holds for 10 s" in screen.text


@pytest.mark.parametrize("refusal", [None, WhatIfRefusal.PHASES])
async def test_a_large_screen_has_the_lines_of_the_text_form(refusal: WhatIfRefusal | None) -> None:
    found = replace(FOUND, recording_cost=0.99)
    if refusal is not None:
        found = replace(found, refusal=refusal, predictions=())
    async with opened(SNAPSHOT, size=(200, 60)) as screen:
        await predicted(screen, found)
        visible = [line.strip() for line in screen.lines]
        for line in text_report.details(found, SNAPSHOT, 199):
            assert line in visible
        assert any(
            line.startswith("cost         the recording changed the acquisitions a second by -1 %")
            for line in visible
        )
        assert any("70.0 %" in line and "████████" in line for line in visible)
        assert screen.lines[-1].startswith(" ? help")


async def test_a_small_screen_has_as_many_details_as_fit() -> None:
    many = replace(FOUND, pressure=FOUND.pressure * 10)
    async with opened(SNAPSHOT, size=(80, 24)) as screen:
        await predicted(screen, many)
        await screen.keys("escape", "U")
        assert "worker: 4 threads" in screen.text
        assert "throughput   5,821 rounds a second" in screen.text
        assert "… W saves all lines" in screen.lines[-2]
        assert screen.lines[-1].startswith(" ? help")


async def test_without_the_library_the_screen_says_so_at_once() -> None:
    async with opened(replace(SNAPSHOT, source="proc")) as screen:
        await screen.keys("U")
        assert "No prediction: whatif needs the library; process 4711 runs" in screen.text
        assert "start it with `locktop run -- COMMAND`" in " ".join(screen.text.split())
        assert "Enter records" not in screen.text


async def test_of_another_machine_the_screen_says_so_at_once() -> None:
    async with opened(SNAPSHOT) as screen:
        screen.feed.source = None
        await screen.keys("U")
        assert (
            "No prediction: predictions are made where the process runs: `locktop whatif"
            in screen.text
        )


async def test_a_wide_footer_has_the_key() -> None:
    async with opened(SNAPSHOT, size=(200, 60)) as screen:
        assert "U what if" in screen.lines[-1]


@asynccontextmanager
async def replayed(past: FixedPast) -> AsyncIterator[Pilot[int]]:
    app = LocktopApp(ReplayFeed(), "night", moments=past, is_replay=True, environ={})
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        yield pilot


def clock_span(from_s: float, to_s: float) -> str:
    return " to ".join(clock_text(at(one * 1000)) for one in (from_s, to_s))


def recorded_past(level: str) -> FixedPast:
    past = relay(20)
    base = replace(SNAPSHOT, level=level)
    return FixedPast(dict.fromkeys(past.times_ns(), base), past.found)


async def test_a_replay_predicts_from_the_span_before_the_moment() -> None:
    async with replayed(recorded_past("all")) as pilot:
        await pilot.press("U")
        await settle(pilot)
        assert f"Enter predicts from the recording, {clock_span(0, 10)}" in text_of(pilot.app)
        assert "records all holds" not in text_of(pilot.app)
        await pilot.press("escape", "end", "U")
        await settle(pilot)
        assert f"Enter predicts from the recording, {clock_span(10, 20)}" in text_of(pilot.app)
        await pilot.press("enter")
        await pilot.app.workers.wait_for_complete()
        await settle(pilot)
        assert "Measured for 10.0 s until" in text_of(pilot.app)
        assert "throughput   " in text_of(pilot.app)
        assert "replay       " in text_of(pilot.app)


async def test_a_recording_of_another_level_is_refused_at_once() -> None:
    async with replayed(recorded_past("contended")) as pilot:
        await pilot.press("U")
        await settle(pilot)
        assert "the recording has the level contended; whatif needs one" in text_of(pilot.app)


async def saved(screen: Screen, key: str, directory: Path) -> str:
    """Return the file that a key saves."""
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
        found = json.loads(await saved(screen, "w", tmp_path))["whatif"]
        assert [one["ratio"] for one in found["predictions"]] == [3.5, 1.95, 0.91]
        assert found["taken_at"] == FOUND.taken_at
        text = await saved(screen, "W", tmp_path)
        assert f"of records until {FOUND.taken_at}" in text
        assert "worker: 4 threads" in text


async def test_the_keys_that_save_work_on_the_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(SNAPSHOT) as screen:
        await predicted(screen, FOUND)
        found = json.loads(await saved(screen, "w", tmp_path))["whatif"]
        assert [one["ratio"] for one in found["predictions"]] == [3.5, 1.95, 0.91]
        assert "worker: 4 threads" in await saved(screen, "W", tmp_path)
        await screen.keys("question_mark")
        assert "save the snapshot as JSON" in screen.text


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
