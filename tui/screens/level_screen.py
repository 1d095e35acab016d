"""The key for the level of the library, which is of now, whatever moment the screen shows."""

from __future__ import annotations

import asyncio
from typing import Any

from textual import work

from locktop.collector.errors import LocktopError
from locktop.tui.feed import Slot, SnapshotFeed
from locktop.tui.screens.over_time import OverTimeScreen
from locktop.tui.widgets.level_dialog import LevelDialog

#: How long a fault stays in the last line.
_FAULT_S = 15.0


class LevelScreen(OverTimeScreen):
    """Sets the level by a dialogue."""

    def __init__(
        self, feed: SnapshotFeed, asks_for_level: bool, *arguments: Any, **named: Any
    ) -> None:
        """Make the screen.

        Args:
            feed: where snapshots come from.
            asks_for_level: whether the user must confirm a new level.
            arguments: see PastScreen.
            named: see PastScreen.
        """
        super().__init__(*arguments, **named)
        self._feed = feed
        self._slot = Slot()
        self._asks_for_level = asks_for_level

    def action_level(self) -> None:
        """Open the dialogue for the level of the library."""
        snapshot = self._slot.newest  # the level is of now
        if self.past.is_replay:
            self.show_message("There is no level to set: this is a recording.")
            return
        if snapshot is None:
            return
        if snapshot.ended:
            self.show_message("The process has ended: there is no level to set.")
            return
        if snapshot.is_sampled:
            self.show_message("There is no level to set: the process runs without the library.")
            return
        dialog = LevelDialog(snapshot.process, snapshot.level, self._asks_for_level)
        self.app.push_screen(dialog, self._level_chosen)

    def _level_chosen(self, level: str | None) -> None:
        if level is not None:
            self._set_level(level)

    @work(exclusive=True, group="level")
    async def _set_level(self, wanted: str) -> None:
        try:
            before = await asyncio.to_thread(self._feed.set_level, wanted)
        except LocktopError as error:
            self.show_message(str(error), style="stuck", seconds=_FAULT_S)
            return
        was = f"was {before}" if before != wanted else "as it was"
        self.show_message(f"Level {wanted}, {was}")
