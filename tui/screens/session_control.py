"""Begins and ends the session, which is of now, whatever moment the screen shows."""

from __future__ import annotations

import asyncio
from functools import partial

from locktop.tui.feed import Slot, SnapshotFeed
from locktop.tui.widgets.list_screen import ListScreen

#: How long a message stays in the last line.
_MESSAGE_S = 15.0


class SessionControl:
    """Begins and ends the session of a process."""

    def __init__(
        self, feed: SnapshotFeed, slot: Slot, screen: ListScreen, *, is_replay: bool
    ) -> None:
        """Args:
        feed: has the session.
        slot: has the newest snapshot.
        screen: has the messages and the worker.
        is_replay: whether there is a recording and no process.
        """
        self._feed = feed
        self._slot = slot
        self._screen = screen
        self._is_replay = is_replay

    def begin_or_end(self, begins: bool) -> None:
        """Begin the session anew, or end it."""
        newest = self._slot.newest
        if self._is_replay:
            said = "There is no session to begin or end: this is a recording."
            self._screen.show_message(said)
        elif newest is not None and newest.ended:
            self._screen.show_message("The process has ended: there is nothing more to measure.")
        else:
            self._screen.start(partial(self._set, begins), "session")

    async def _set(self, begins: bool) -> None:
        message = await asyncio.to_thread(self._feed.session, begins)
        self._screen.show_message(message, seconds=_MESSAGE_S)
