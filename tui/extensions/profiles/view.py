"""The view of the profiles: what the key of the monitor opens."""

from __future__ import annotations

from locktop.collector.extensions.profiles.model import profiles_of
from locktop.collector.model import Lock, Snapshot
from locktop.tui.screens.view_host import ViewHost


class ProfilesView:
    """Opens the screen of the profiles. See View."""

    def __init__(self, host: ViewHost) -> None:
        """``host``: the monitor."""
        self._host = host

    def open(self, snapshot: Snapshot, lock: Lock | None) -> None:
        host = self._host
        if not profiles_of(snapshot):
            text = "This program makes no profile of its own code (docs/profile.md)."
            host.monitor.show_message(text)
            return
        from locktop.tui.extensions.profiles.screen import ProfilesScreen

        # The code is read from the process, which must run on this machine.
        is_here = host.feed.source is not None and not host.past.is_active
        screen = ProfilesScreen(snapshot, reads_code=is_here and not snapshot.ended)
        host.show(screen, lambda: None)

    def tick(self) -> None:
        pass

    def annotate(self, snapshot: Snapshot) -> Snapshot:
        return snapshot
