"""The keys that begin and end a session, and the first line while a session goes on."""

from __future__ import annotations

from msgspec.structs import replace
from support.driven import opened
from unit.builders import scenarios


async def test_the_keys_begin_and_end_a_session() -> None:
    async with opened() as screen:
        for key, begins, message in (
            ("R", True, "The session begins anew."),
            ("E", False, "The session ended."),
            ("R", True, "The session begins anew."),
        ):
            await screen.keys(key)
            # A thread sets the session; the next key would replace work that has not begun.
            await screen.says(message)
            assert screen.feed.sessions.pop() is begins
        assert not screen.feed.sessions


async def test_the_first_line_says_that_the_figures_are_of_a_session() -> None:
    async with opened() as screen:
        assert "session" not in screen.status
        await screen.show(replace(scenarios.normal(), session_s=12.0, duration_s=12.0))
        assert "session 00:00:12" in screen.status
