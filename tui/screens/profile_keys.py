"""Opens the screen of the profiles that the program makes of its own code."""

from __future__ import annotations

from locktop.collector.model import Snapshot
from locktop.tui.feed import PollerFeed
from locktop.tui.screens.session_keys import SessionKeys


class ProfileKeys(SessionKeys):
    """A screen with the key for profiles; a subclass draws the snapshots."""

    def visible_snapshot(self) -> Snapshot | None:
        """Return the snapshot that the screen shows."""
        raise NotImplementedError

    def action_profiles(self) -> None:
        """Show the profiles of the program."""
        snapshot = self.visible_snapshot()
        if snapshot is None:
            return
        if not snapshot.profiles:
            self.show_message("This program makes no profile of its own code (docs/profile.md).")
            return
        from locktop.tui.screens.profiles import ProfilesScreen

        # The code is read from the process, which must run on this machine.
        is_here = isinstance(self._feed, PollerFeed) and not self.past.is_active
        self._above = ProfilesScreen(snapshot, reads_code=is_here and not snapshot.ended)
        self.app.push_screen(self._above, self.above_closed)
