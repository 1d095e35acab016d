"""The keys that begin and end a session, which is of now, whatever moment the screen shows."""

from __future__ import annotations

import asyncio

from textual import work

from locktop.collector.errors import LocktopError
from locktop.tui.screens.level_screen import LevelScreen

#: How long a message stays in the last line.
_MESSAGE_S = 15.0


class SessionKeys(LevelScreen):
    """Begins and ends the session of the process."""

    @work(exclusive=True, group="session")
    async def action_session(self, word: str) -> None:
        """Begin the session anew (``start``), or end it (``stop``)."""
        if self.past.is_replay:
            self.show_message("There is no session to begin or end: this is a recording.")
            return
        try:
            message = await asyncio.to_thread(self._feed.session, word == "start")
        except LocktopError as error:
            self.show_message(str(error), style="waiting", seconds=_MESSAGE_S)
            return
        self.show_message(message, seconds=_MESSAGE_S)
