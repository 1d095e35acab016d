"""The screen above the monitor: a call tree, the time line, the heat map, or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.collector.model import Lock, Snapshot
from locktop.tui.extension import monitor_keys
from locktop.tui.extension_parts import View
from locktop.tui.feed import Slot, SnapshotFeed
from locktop.tui.past import Past
from locktop.tui.screens.view_host import Below, ViewHost
from locktop.tui.widgets.list_screen import ListScreen

if TYPE_CHECKING:
    from locktop.collector.recording.time_lines import TimeLineReader
    from locktop.tui.screens.time_screen import TimeScreen
    from locktop.tui.time_view import TimeView


#: More records take more than some seconds to read, in which the screen shows nothing new.
_MAX_RECORDS = 100_000


class ScreenAbove:
    """Opens one screen at a time over the monitor, and passes snapshots on to it."""

    def __init__(
        self,
        monitor: ListScreen,
        feed: SnapshotFeed,
        slot: Slot,
        past: Past,
        below: Below,
        now: Callable[[], float],
    ) -> None:
        """Args:
        monitor: the screen below.
        feed: brings the snapshots.
        slot: has the newest snapshot.
        past: what the time line and the heat map show.
        below: what the screen above uses of the monitor.
        now: a monotonic clock in seconds.
        """
        self._monitor = monitor
        self._feed = feed
        self._slot = slot
        self._past = past
        self._below = below
        self._now = now
        self._screen: ListScreen | None = None
        self._next_view = ""  # where to go when the screen has closed
        self._views: dict[str, View] = {}  # of extensions, by their names
        self._host = ViewHost(
            monitor, feed, past, below, now, lambda: self._screen or monitor, self._show
        )
        #: Reads the past; None until the time line or the heat map was opened.
        self.reader: TimeLineReader | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is a screen above."""
        return self._screen is not None

    def _is_over(self) -> bool:
        """Whether no new snapshot comes: of a replay, an ended process or an ended stream."""
        newest = self._slot.newest
        has_ended = newest is not None and newest.ended
        return self._past.is_replay or has_ended or bool(self._feed.stale)

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Pass a snapshot on to the screen above."""
        if self._screen is not None:
            self._screen.show_flags()
            self._screen.show_snapshot(snapshot)

    def leave_for(self, view: str) -> None:
        """Close the screen above, and go to another view of the monitor."""
        if self._screen is not None:
            self._next_view = view
            self._screen.dismiss()

    @property
    def screen(self) -> ListScreen | None:
        """The screen above; None without one."""
        return self._screen

    def _push(
        self,
        screen: ListScreen,
        view: str,
        closed: Callable[[], None] | None = None,
    ) -> None:
        def end(_: None) -> None:
            # A fast key may have opened a later screen before Textual tells the end of this one.
            if self._screen is screen:
                self._screen = None
            (closed or self._back)()

        screen.view_name, screen.flags_of = view, self._below.flags
        self._screen = screen
        self._monitor.app.push_screen(screen, end)
        screen.call_after_refresh(screen.show_flags)

    def open_call_tree(self, snapshot: Snapshot, weight: str | None, idle: bool) -> None:
        """Open the call tree of a snapshot; for the other arguments see CallTreeScreen."""
        from locktop.collector.render.profiles.profile import SnapshotProfile, weight_of
        from locktop.tui.screens.call_tree import CallTreeScreen

        profile = SnapshotProfile(snapshot)
        screen = CallTreeScreen(
            profile,
            self._below.status,
            weight=weight_of(profile.weights, weight),
            idle=idle,
            pause=self._below.pause,
            travel=self._below.travel,
            now=self._now,
        )
        self._push(screen, "callers")

    def open_view(self, name: str, snapshot: Snapshot, lock: Lock | None) -> None:
        """Open the view of an extension; ``lock`` is the chosen one, None for none."""
        if name not in self._views:
            self._views[name] = monitor_keys()[name].make(self._host)
        self._views[name].open(snapshot, lock)

    def _show(self, screen: ListScreen, closed: Callable[[], None]) -> None:
        """Show a screen of an extension."""

        def end() -> None:
            self._back()
            closed()

        self._push(screen, screen.view_name, end)

    def annotate(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot with what the views of extensions know of it."""
        for view in self._views.values():
            snapshot = view.annotate(snapshot)
        return snapshot

    def tick(self) -> None:
        """Called at each scan, also while the screen stands still."""
        for view in self._views.values():
            view.tick()

    def open_timeline(self, view: TimeView | None = None) -> None:
        """Open the time line; ``view``: what it shows first, None for the newest part."""
        from locktop.tui.screens.timeline import TimelineScreen

        self._open(TimelineScreen, "timeline", self.open_heat_map, view)

    def open_heat_map(self, view: TimeView | None = None) -> None:
        """Open the heat map; ``view``: what it shows first, None for the newest part."""
        from locktop.tui.screens.heat_map import HeatMapScreen

        self._open(HeatMapScreen, "history", self.open_timeline, view)

    def _open(
        self,
        make: type[TimeScreen],
        name: str,
        other: Callable[[TimeView], None],
        view: TimeView | None,
    ) -> None:
        from locktop.collector.recording.time_lines import TimeLineReader
        from locktop.tui.screens.time_screen import OpenedPast

        past = self._past
        try:
            past.pause()  # the user comes back to this moment
            if past.moments is None:
                raise LocktopError("Nothing is kept: --history 0 says so.")
            self.reader = self.reader or TimeLineReader(
                past.moments, _MAX_RECORDS, takes_counters=True
            )
            screen = make(OpenedPast(self.reader, past.cursor_ns, self._is_over, self._now))
        except LocktopError as error:
            self._monitor.show_message(str(error))
            self._back()
            return
        if view is not None:
            screen.view = view

        def closed() -> None:
            if screen.wants_other and not self.is_open:
                other(screen.view)
            else:
                self._back(screen.chosen_ns)

        self._push(screen, name, closed)

    def _back(self, chosen_ns: int | None = None) -> None:
        """Tell the monitor that a screen has closed. A later screen stays as it is."""
        view, self._next_view = self._next_view, ""
        self._below.closed(chosen_ns, "" if self.is_open else view)
