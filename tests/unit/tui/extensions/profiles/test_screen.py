"""The screen of profiles driven by keys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.driven import Screen
from support.feed import HandFeed
from unit.builders import scenarios
from unit.builders.self_profiles import self_profile

from locktop.collector.extensions.profiles import saved_profile
from locktop.collector.extensions.profiles.model import ProfileRegion
from locktop.collector.model import Snapshot
from locktop.tui.app import LocktopApp
from locktop.tui.extensions.profiles.screen import ProfilesScreen
from locktop.tui.screens.monitor import MonitorScreen

RANDOM = self_profile({4: 30, 8: 10}, "random", 1)
SORTED = self_profile({4: 2, 16: 5}, "sorted", 2)
OTHER = self_profile({}, "other", 3, regions=(ProfileRegion(start=0x7000, size=64),))


def snapshot(*profiles: object) -> Snapshot:
    return replace(scenarios.normal(), sections={"profiles": tuple(profiles)})


@asynccontextmanager
async def opened(
    found: Snapshot | None = None, size: tuple[int, int] = (100, 30)
) -> AsyncIterator[Screen]:
    clock = [0.0]
    feed = HandFeed(found or snapshot(RANDOM, SORTED, OTHER))
    app = LocktopApp(feed, "night", environ={"TERM": "xterm-256color"}, now=lambda: clock[0])
    async with app.run_test(size=size) as pilot:
        screen = Screen(app, pilot, feed, clock)
        await screen.settle()
        await screen.keys("P")
        yield screen


async def test_a_key_lists_the_profiles_and_escape_closes_the_list() -> None:
    async with opened() as screen:
        assert isinstance(screen.app.screen, ProfilesScreen)
        assert "random" in screen.text
        assert "sorted" in screen.text
        await screen.keys("escape")
        assert isinstance(screen.app.screen, MonitorScreen)
        assert "Locks by" in screen.text


async def test_enter_shows_the_buckets_of_a_profile() -> None:
    async with opened() as screen:
        await screen.keys("enter")
        await screen.says("samples 40 = 160 ms")
        assert "+0x4" in screen.text
        assert "75.0 %" in screen.text
        assert "the code was not kept" in screen.text


async def test_a_chosen_profile_is_compared_with_another_one() -> None:
    async with opened() as screen:
        await screen.keys("m", "down")
        await screen.says("A is random")
        await screen.keys("enter")
        await screen.says("B : A  0.175")
        assert "largest difference: sum+0x4, A 30, B 2" in screen.text
        await screen.keys("tab", "down", "escape", "up", "m", "enter")
        await screen.says_no_more("B : A")  # a thread reads the code of the other profile first
        await screen.says("samples 40 = 160 ms")


async def test_profiles_of_different_regions_give_a_message() -> None:
    async with opened() as screen:
        await screen.keys("m", "down", "down", "enter")
        await screen.says("different regions")


async def test_the_counts_go_on_with_each_snapshot() -> None:
    async with opened() as screen:
        await screen.keys("enter")
        await screen.says("samples 40")
        await screen.show(snapshot(self_profile({4: 60, 8: 10}, "random", 1), SORTED))
        await screen.says("samples 70")


async def test_a_damaged_profile_of_a_stream_gives_a_message() -> None:
    async with opened(snapshot(self_profile({4: 1}, bucket_size=0))) as screen:
        await screen.keys("enter")
        await screen.says("the profile is damaged: bucket_size is 0")


async def test_the_filter_leaves_profiles_out() -> None:
    async with opened() as screen:
        await screen.keys("slash", *"sor", "enter")
        assert "random" not in screen.text
        assert "sorted" in screen.text
        await screen.keys("escape", "question_mark")
        await screen.says("choose profile A")


async def test_a_program_without_profiles_gives_a_message() -> None:
    async with opened(snapshot()) as screen:
        assert isinstance(screen.app.screen, MonitorScreen)
        await screen.says("makes no profile of its own code")


async def test_the_screen_fits_a_small_terminal() -> None:
    async with opened(size=(60, 17)) as screen:
        await screen.keys("m", "down", "enter")
        await screen.says("B : A")
        assert all(len(line) <= 60 for line in screen.lines)


async def test_keys_save_the_profile_under_the_cursor_and_the_buckets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened() as screen:
        await screen.keys("W")
        await screen.says("Not saved: Enter shows")
        await screen.keys("m", "down", "w")
        await screen.says("Saved ")
        await screen.keys("enter")
        await screen.says("B : A")
        await screen.keys("W")
        await screen.says(".txt")
    (saved,) = tmp_path.glob("locktop-profile-*-sorted.json")
    kept = saved_profile.parse(saved.read_bytes(), saved.name)
    assert kept.profile == SORTED
    (text,) = tmp_path.glob("locktop-profile-*-random-sorted.txt")
    assert "B : A  0.175" in text.read_text()


async def test_a_damaged_profile_is_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(snapshot(self_profile({4: 1}, bucket_size=0))) as screen:
        await screen.keys("w")
        await screen.says("Not saved: the profile is damaged")
    assert not list(tmp_path.iterdir())
