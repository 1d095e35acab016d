"""The keys that begin and end a session, and the first line while a session goes on."""

from __future__ import annotations

from msgspec.structs import replace
from support.driven import opened
from unit.builders import scenarios


async def test_the_keys_begin_and_end_a_session() -> None:
    async with opened() as screen:
        await screen.keys("R", "E", "R")
        assert screen.feed.sessions == [True, False, True]
        assert "The session begins anew." in screen.text


async def test_the_first_line_says_that_the_figures_are_of_a_session() -> None:
    async with opened() as screen:
        assert "session" not in screen.status
        await screen.show(replace(scenarios.normal(), session_s=12.0, duration_s=12.0))
        assert "session 00:00:12" in screen.status
