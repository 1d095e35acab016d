"""Opens the function calls. The scans read them only while they are on the screen."""

from __future__ import annotations

from collections.abc import Callable

from locktop.collector.model import Snapshot
from locktop.tui.feed import SnapshotFeed
from locktop.tui.screens.past_travel import PastTravel

Show = Callable[[Snapshot, Callable[[Snapshot], str]], None]


class CallsControl:
    """Opens and closes the screen of the function calls."""

    def __init__(self, feed: SnapshotFeed, travel: PastTravel, show: Show) -> None:
        """Args:
        feed: where snapshots come from.
        travel: brings the moments of the past.
        show: opens the screen with a snapshot. The second argument is the note on a snapshot
            without function calls.
        """
        self._feed = feed
        self._travel = travel
        self._show = show
        self._first: Snapshot | None = None  # what the screen began with

    def open(self, snapshot: Snapshot) -> None:
        """Open the screen with this snapshot."""
        self._first = snapshot
        self._show(snapshot, self._missing)
        self._want(True)

    def close(self) -> None:
        """Have the next scans without function calls."""
        if self._first is not None:
            self._first = None
            self._want(False)

    def _want(self, wanted: bool) -> None:
        self._feed.want_calls(wanted)
        self._travel.want_calls(wanted)

    def _missing(self, snapshot: Snapshot) -> str:
        """Return the note on a snapshot without function calls."""
        from locktop.collector.render.profiles.calls_profile import NO_CALLS, NOT_KEPT, NOT_READ

        if self._travel.is_active:
            return NOT_KEPT
        return NOT_READ if snapshot is self._first else NO_CALLS
