"""The screen of the code inside a lock, driven by keys over snapshots made by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.driven import Screen, opened, row_under_cursor
from support.feed import HandFeed
from unit.builders import scenarios
from unit.builders.inside_samples import THREE, with_samples

from locktop.collector.extensions.inside.model import InsideProfile
from locktop.collector.model import Kind, Snapshot
from locktop.collector.recording.recording import Recording
from locktop.collector.recording.recording_info import RecordingInfo
from locktop.collector.recording.recording_writer import RecordingWriter
from locktop.tui.app import LocktopApp
from locktop.tui.extensions.inside.screen import InsideLockScreen
from locktop.tui.feed import ReplayFeed
from locktop.tui.screens.monitor import MonitorScreen

SNAPSHOT = scenarios.normal()
BEGIN = 1_790_000_000_000_000_000


def chosen(screen: Screen) -> int:
    """Return the id of the lock under the cursor of the monitor."""
    assert screen.locks.current is not None
    return screen.locks.current


def name_of(lock: int) -> str:
    return next(one.name for one in SNAPSHOT.locks if one.id == lock)


def row(screen: Screen, text: str) -> str:
    """Return the first row with a text: that of the list of functions."""
    return next(line for line in screen.lines if text in line)


def figures(screen: Screen, function: str) -> str:
    """Return the shares of a function in the list of functions: total, own, asleep, its name."""
    total, _, own, asleep, name, *_ = row(screen, function).split()
    return f"{total} {own} {asleep} {name}"


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_the_functions_stand_with_their_shares(size: tuple[int, int]) -> None:
    async with opened(SNAPSHOT, size=size) as screen:
        lock = chosen(screen)
        await screen.keys("I")
        assert isinstance(screen.app.screen, InsideLockScreen)
        await screen.show(with_samples(SNAPSHOT, lock))
        assert f"Inside mutex {name_of(lock)}" in screen.text
        assert "100 Hz, 100 samples, on CPU 80%, asleep 20%" in screen.text
        assert figures(screen, "takes_most") == "70% 70% - takes_most"
        assert figures(screen, "takes_some") == "20% 20% 20% takes_some"
        assert figures(screen, "takes_little") == "10% 10% - takes_little"
        assert "100% ━━━━━━━━  1.00s      - ▾ holds_once work.c:1" in screen.text
        assert "main" not in screen.text


async def test_samples_are_taken_while_the_screen_is_open() -> None:
    async with opened(SNAPSHOT) as screen:
        lock = chosen(screen)
        assert screen.feed.profiled == []
        await screen.keys("I")
        await screen.says("sampling begins")
        assert screen.feed.profiled == [(lock,)]
        await screen.show(SNAPSHOT)
        await screen.keys("question_mark", "escape")
        assert screen.feed.profiled == [(lock,)]
        await screen.keys("escape")
        await screen.reaches(lambda: len(screen.feed.profiled) > 1)
        assert isinstance(screen.app.screen, MonitorScreen)
        assert screen.feed.profiled == [(lock,), ()]


async def test_a_refusal_replaces_the_samples() -> None:
    async with opened(SNAPSHOT, size=(80, 24)) as screen:
        screen.feed.refusal = "what runs inside locks is known with the library alone: no library"
        await screen.keys("I")
        await screen.says("what runs inside locks is known with the library")
        await screen.keys("W")
        await screen.says("Not saved: what runs inside locks")
        await screen.keys("ctrl+y")
        await screen.says("Not copied: what runs inside locks")


async def test_a_line_says_why_there_is_no_sample_and_never_that_nobody_held_the_lock() -> None:
    sampled = replace(SNAPSHOT, sections={"inside": InsideProfile(1.0, 0.01, 0, 0, 0, 0)})
    async with opened(SNAPSHOT) as screen:
        lock = next(one for one in SNAPSHOT.locks if one.id == chosen(screen))
        await screen.keys("I")
        for fields, words in (
            ({"waiters": ()}, "no sample yet: no thread waits for it now"),
            ({"waiters": (1,), "holders": ()}, "no sample yet: its holder is not known"),
            ({"waiters": (1,), "holders": (4,)}, "no sample yet: 4 holds it"),
            (
                {"kind": Kind.SEM, "holders": ()},
                "nobody records who holds a sem; its holder is not known",
            ),
            ({"kind": Kind.SEM, "holders": (4,)}, "nobody records who holds a sem; 4 has it now"),
        ):
            changed = replace(lock, **fields)
            locks = tuple(changed if one.id == lock.id else one for one in SNAPSHOT.locks)
            await screen.show(replace(sampled, locks=locks))
            assert words in " ".join(screen.text.split()), screen.text


async def test_a_lock_that_is_gone_leaves_the_screen_standing() -> None:
    async with opened(SNAPSHOT) as screen:
        lock = chosen(screen)
        await screen.keys("I")
        await screen.show(with_samples(SNAPSHOT, lock))
        others = tuple(one for one in SNAPSHOT.locks if one.id != lock)
        await screen.show(replace(with_samples(SNAPSHOT, 0), locks=others))
        assert f"Inside mutex {name_of(lock)}  the lock is not in this snapshot" in screen.text
        assert "takes_most" not in screen.text


async def test_a_weight_takes_the_samples_that_slept() -> None:
    async with opened(SNAPSHOT) as screen:
        lock = chosen(screen)
        await screen.keys("I")
        await screen.show(with_samples(SNAPSHOT, lock))
        await screen.keys("v", "v")
        assert "by time held asleep" in screen.text
        assert "100%" in row(screen, "takes_some")
        assert "takes_most" not in screen.text


async def test_a_key_sorts_the_functions() -> None:
    async with opened(SNAPSHOT) as screen:
        lock = chosen(screen)
        await screen.keys("I")
        await screen.show(with_samples(SNAPSHOT, lock))
        view = screen.app.screen
        assert isinstance(view, InsideLockScreen)
        assert "holds_once" in row_under_cursor(view.active_list())
        await screen.keys("s")
        assert "takes_most" in row_under_cursor(view.active_list())
        await screen.keys("s")
        assert "takes_some" in row_under_cursor(view.active_list())


async def test_tab_goes_through_the_lists_and_enter_to_a_function() -> None:
    async with opened(SNAPSHOT, size=(80, 24)) as screen:
        lock = chosen(screen)
        await screen.keys("I")
        await screen.show(with_samples(SNAPSHOT, lock))
        assert "▶ Functions" in screen.text
        await screen.keys("tab", "down")
        assert "▶ Inside" in screen.text
        await screen.keys("tab")
        assert "▶ Function 70% of all, 700ms itself" in screen.text
        assert "holds_once" in screen.text
        await screen.keys("escape", "shift+tab", "down", "down", "enter")
        assert "▶ Function 20% of all, 200ms itself" in screen.text
        await screen.keys("escape")
        assert "▶ Functions" in screen.text


async def test_the_filter_takes_functions_and_branches() -> None:
    async with opened(SNAPSHOT) as screen:
        lock = chosen(screen)
        await screen.keys("I")
        await screen.show(with_samples(SNAPSHOT, lock))
        await screen.keys("slash", *"little")
        assert "takes_little" in screen.text
        assert "takes_most" not in screen.text


async def test_saving_writes_all_that_runs_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(SNAPSHOT) as screen:
        lock = chosen(screen)
        await screen.keys("I")
        await screen.show(with_samples(SNAPSHOT, lock))
        await screen.keys("w")
        await screen.says("Saved ")
        await screen.keys("W")
        await screen.says(".txt")
    (saved,) = tmp_path.glob("locktop-inside-*.json")
    document = json.loads(saved.read_text())
    assert document["lock"]["id"] == lock
    own = {one["function"]: one["own"] for one in document["functions"]}
    assert {name: own[name] for name in THREE} == THREE
    (text,) = tmp_path.glob("locktop-inside-*.txt")
    assert "takes_most" in text.read_text()


async def test_a_thread_leads_to_the_lock_that_it_waits_for() -> None:
    async with opened(SNAPSHOT) as screen:
        await screen.keys("tab", "I")
        waits = [one.waiting_for for one in SNAPSHOT.threads if one.waiting_for is not None]
        await screen.says("Inside ")
        assert screen.feed.profiled[0][0] in {wait.lock for wait in waits}


async def test_without_a_lock_a_line_says_what_to_choose() -> None:
    async with opened(scenarios.empty()) as screen:
        await screen.keys("I")
        assert "Choose one lock" in screen.text


async def test_the_memory_and_a_recording_show_the_samples_of_their_moments(
    tmp_path: Path,
) -> None:
    lock = SNAPSHOT.locks[0].id
    made = [SNAPSHOT, with_samples(SNAPSHOT, lock), SNAPSHOT]
    path = tmp_path / "run.locktop"
    writer = RecordingWriter(path, RecordingInfo.from_snapshot(SNAPSHOT, "1.0"), BEGIN)
    for second, snapshot in enumerate(made):
        writer.add_snapshot(snapshot, BEGIN + second * 1_000_000_000)
    writer.finish("the process has ended", BEGIN + 3_000_000_000)
    app = LocktopApp(
        ReplayFeed(), "night", environ={}, moments=Recording(path), is_replay=True, now=lambda: 0.0
    )
    async with app.run_test(size=(120, 40)) as pilot:
        screen = Screen(app, pilot, HandFeed(), [0.0])
        await screen.says("Locks by")
        await screen.keys("I")
        await screen.says("no samples at this moment: locktop takes them only while asked to")
        await screen.keys("right_square_bracket")
        await screen.says("sampled at 100 Hz, 100 samples")
        rows = [line.split()[4] for line in screen.lines[5:9]]
        assert rows == ["holds_once", *THREE]
        assert figures(screen, "takes_most") == "70% 70% - takes_most"
        await screen.keys("right_square_bracket")
        await screen.says("no samples at this moment")


async def test_the_details_of_a_lock_have_its_largest_functions() -> None:
    lock = SNAPSHOT.locks[0]
    made: Snapshot = with_samples(SNAPSHOT, lock.id)
    async with opened(made, size=(200, 60)) as screen:
        while chosen(screen) != lock.id:
            await screen.keys("down")
        assert "inside     70%  takes_most work.c:1" in screen.text
        assert "holds_once" not in screen.text
        assert "of 100 samples; I shows all" in screen.text
