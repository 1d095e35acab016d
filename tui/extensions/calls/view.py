"""The view of the function calls. The scans read them only while they are on the screen."""

from __future__ import annotations

from locktop.collector.extensions.calls.calls_profile import (
    NO_CALLS,
    NOT_KEPT,
    NOT_READ,
    CallsProfile,
)
from locktop.collector.extensions.calls.formats import SCREEN_FORMATS
from locktop.collector.extensions.calls.model import NAME
from locktop.collector.model import Lock, Snapshot
from locktop.tui.screens.call_tree import CallTreeScreen
from locktop.tui.screens.view_host import ViewHost


class CallsView:
    """Opens the tree of the function calls. See View."""

    def __init__(self, host: ViewHost) -> None:
        """``host``: the monitor."""
        self._host = host
        self._first: Snapshot | None = None  # what the screen began with
        self._screen: CallTreeScreen | None = None

    def open(self, snapshot: Snapshot, lock: Lock | None) -> None:
        host, below = self._host, self._host.below
        self._first = snapshot
        screen = self._screen = CallTreeScreen(
            self._profile(snapshot),
            below.status,
            pause=below.pause,
            travel=below.travel,
            profile_of=self._profile,
            formats=SCREEN_FORMATS,
            now=host.now,
        )
        screen.view_name = NAME

        def closed() -> None:
            # A fast key may have opened the screen again.
            if self._screen is screen:
                self._screen = self._first = None
                self._want(False)

        host.show(screen, closed)
        self._want(True)

    def _profile(self, snapshot: Snapshot) -> CallsProfile:
        return CallsProfile(snapshot, missing=self._missing(snapshot))

    def _want(self, wanted: bool) -> None:
        self._host.feed.want_section(NAME, wanted)
        self._host.below.travel.want_section(NAME, wanted)

    def _missing(self, snapshot: Snapshot) -> str:
        """Return the note on a snapshot without function calls."""
        if self._host.below.travel.is_active:
            return NOT_KEPT
        return NOT_READ if snapshot is self._first else NO_CALLS

    def tick(self) -> None:
        pass

    def annotate(self, snapshot: Snapshot) -> Snapshot:
        return snapshot
