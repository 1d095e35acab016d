"""Sets the level of the library, which is of now, whatever moment the screen shows."""

from __future__ import annotations

import asyncio
from functools import partial

from locktop.tui.feed import Slot, SnapshotFeed
from locktop.tui.widgets.level_dialog import LevelDialog
from locktop.tui.widgets.list_screen import ListScreen


class LevelControl:
    """Asks for a level in a dialogue, and sets it."""

    def __init__(self, feed: SnapshotFeed, slot: Slot, screen: ListScreen, *, asks: bool) -> None:
        """Args:
        feed: sets the level.
        slot: has the newest snapshot.
        screen: has the messages and the worker.
        asks: whether the user must confirm a new level.
        """
        self._feed = feed
        self._slot = slot
        self._screen = screen
        self._asks = asks

    def open(self) -> None:
        """Open the dialogue, or say why there is none."""
        snapshot = self._slot.newest  # the level is of now
        if self._feed.no_level:
            self._screen.show_message(self._feed.no_level)
        elif snapshot is None:
            return
        elif snapshot.ended:
            self._screen.show_message("The process has ended: there is no level to set.")
        elif snapshot.is_sampled:
            said = "There is no level to set: the process runs without the library."
            self._screen.show_message(said)
        else:
            dialog = LevelDialog(snapshot.process, snapshot.level, self._asks)
            self._screen.app.push_screen(dialog, self._apply_choice)

    def _apply_choice(self, level: str | None) -> None:
        if level is not None:
            self._screen.start(partial(self._set, level), "level")

    async def _set(self, wanted: str) -> None:
        before = await asyncio.to_thread(self._feed.set_level, wanted)
        was = f"was {before}" if before != wanted else "as it was"
        self._screen.show_message(f"Level {wanted}, {was}")
