"""The question before `locktop run` ends its program."""

from __future__ import annotations

import pytest
from support.driven import opened
from textual.events import Key
from unit.builders import scenarios

QUESTION = "End store 4711?"


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_the_program_ends_after_yes(key: str) -> None:
    left: list[bool] = []
    async with opened(size=(80, 24), leave_running=lambda: left.append(True)) as screen:
        await screen.keys(key)
        await screen.says(QUESTION)
        assert screen.app.is_running
        assert "leave it running" in screen.text
        await screen.keys("y")
        assert screen.app.return_code == 0
    assert not left


async def test_the_program_goes_on_after_k() -> None:
    left: list[bool] = []
    async with opened(leave_running=lambda: left.append(True)) as screen:
        await screen.keys("c", "q", "k")  # also over the call tree
        assert screen.app.return_code == 0
    assert left


@pytest.mark.parametrize("key", ["escape", "n", "q"])
async def test_the_screen_stays_after_no(key: str) -> None:
    async with opened(leave_running=lambda: None) as screen:
        await screen.keys("q", key)
        assert QUESTION not in screen.text
        assert screen.app.return_code is None
        await screen.keys("p")
        assert "PAUSED" in screen.text


async def test_a_second_ctrl_c_means_yes() -> None:
    async with opened(leave_running=lambda: None) as screen:
        for _ in range(2):
            screen.app.post_message(Key("ctrl+c", "\x03"))
        await screen.settle()
        assert screen.app.return_code == 0


async def test_an_ended_program_needs_no_answer() -> None:
    async with opened(scenarios.ended(), leave_running=lambda: None) as screen:
        await screen.keys("q")
        assert screen.app.return_code == 0


@pytest.mark.parametrize("size", [(1, 1), (20, 5), (200, 60)])
async def test_the_question_is_cut_on_small_terminals(size: tuple[int, int]) -> None:
    async with opened(size=size, leave_running=lambda: None) as screen:
        await screen.keys("q", "y")
        assert screen.app.return_code == 0
