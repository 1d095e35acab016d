"""The screen above the monitor: the call tree, the time line, the heat map, or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.collector.model import Snapshot
from locktop.tui.past import Past
from locktop.tui.widgets.list_screen import ListScreen, Travel

if TYPE_CHECKING:
    from locktop.collector.recording.time_lines import TimeLineReader
    from locktop.tui.screens.call_tree import CallTreeScreen, StatusLine
    from locktop.tui.screens.time_screen import TimeScreen
    from locktop.tui.time_view import TimeView


#: More records take more than some seconds to read, in which the screen shows nothing new.
_MAX_RECORDS = 100_000


class ScreenAbove:
    """Opens one screen at a time over the monitor, and passes snapshots on to it."""

    def __init__(
        self,
        monitor: ListScreen,
        past: Past,
        closed: Callable[[int | None], None],
        now: Callable[[], float],
    ) -> None:
        """Args:
        monitor: the screen below.
        past: what the time line and the heat map show.
        closed: is called when the user is back, with the moment that he chose above, or None.
        now: a monotonic clock in seconds.
        """
        self._monitor = monitor
        self._past = past
        self._closed = closed
        self._now = now
        self._screen: CallTreeScreen | TimeScreen | None = None
        #: Reads the past; None until the time line or the heat map was opened.
        self.reader: TimeLineReader | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is a screen above."""
        return self._screen is not None

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Pass a snapshot on to the screen above."""
        if self._screen is not None:
            self._screen.show_snapshot(snapshot)

    def open_call_tree(
        self,
        snapshot: Snapshot,
        status: StatusLine,
        *,
        weight: str | None,
        idle: bool,
        pause: Callable[[], None],
        travel: Travel,
    ) -> None:
        """Open the call tree of a snapshot; for the other arguments see CallTreeScreen."""
        from locktop.collector.profile.profile import SnapshotProfile, weight_of
        from locktop.tui.screens.call_tree import CallTreeScreen

        profile = SnapshotProfile(snapshot)
        self._screen = CallTreeScreen(
            profile,
            status,
            weight=weight_of(profile.weights, weight),
            idle=idle,
            pause=pause,
            travel=travel,
            now=self._now,
        )
        self._monitor.app.push_screen(self._screen, lambda _: self._back(None))

    def open_calls(
        self,
        snapshot: Snapshot,
        status: StatusLine,
        *,
        missing: Callable[[Snapshot], str],
        pause: Callable[[], None],
        travel: Travel,
    ) -> None:
        """Open the function calls of a snapshot; for the other arguments see CallTreeScreen.

        ``missing`` returns the note on a snapshot without function calls.
        """
        from locktop.collector.profile.calls_profile import CallsProfile
        from locktop.tui.screens.call_tree import CallTreeScreen

        def profile_of(newer: Snapshot) -> CallsProfile:
            return CallsProfile(newer, missing=missing(newer))

        self._screen = CallTreeScreen(
            profile_of(snapshot),
            status,
            pause=pause,
            travel=travel,
            profile_of=profile_of,
            now=self._now,
        )
        self._monitor.app.push_screen(self._screen, lambda _: self._back(None))

    def open_timeline(self, view: TimeView | None = None) -> None:
        """Open the time line; ``view``: what it shows first, None for the newest part."""
        from locktop.tui.screens.timeline import TimelineScreen

        self._open(TimelineScreen, self.open_heat_map, view)

    def open_heat_map(self, view: TimeView | None = None) -> None:
        """Open the heat map; ``view``: what it shows first, None for the newest part."""
        from locktop.tui.screens.heat_map import HeatMapScreen

        self._open(HeatMapScreen, self.open_timeline, view)

    def _open(
        self, make: type[TimeScreen], other: Callable[[TimeView], None], view: TimeView | None
    ) -> None:
        from locktop.collector.recording.time_lines import TimeLineReader
        from locktop.tui.screens.time_screen import OpenedPast

        past = self._past
        try:
            past.pause()  # the user comes back to this moment
            if past.moments is None:
                raise LocktopError("Nothing is kept: --history 0 says so.")
            self.reader = self.reader or TimeLineReader(past.moments, _MAX_RECORDS)
            screen = make(OpenedPast(self.reader, past.time_ns, past.is_replay, self._now))
        except LocktopError as error:
            self._monitor.show_message(str(error))
            self._back(None)
            return
        if view is not None:
            screen.view = view

        def closed(_: None) -> None:
            if screen.wants_other:
                other(screen.view)
            else:
                self._back(screen.chosen_ns)

        self._screen = screen
        self._monitor.app.push_screen(screen, closed)

    def _back(self, chosen_ns: int | None) -> None:
        self._screen = None
        self._closed(chosen_ns)
