"""Opens the screens over time, the time line and the heat map, over the monitor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.tui.screens.past_screen import PastScreen

if TYPE_CHECKING:
    from locktop.collector.recording.time_lines import TimeLineReader
    from locktop.tui.screens.call_tree import CallTreeScreen
    from locktop.tui.screens.profiles import ProfilesScreen
    from locktop.tui.screens.time_screen import TimeScreen
    from locktop.tui.time_view import TimeView


#: More records take more than some seconds to read, in which the screen shows nothing new.
_MAX_RECORDS = 100_000


class OverTimeScreen(PastScreen):
    """A screen with another one above; a subclass draws the snapshots."""

    #: The screen above, which shows each new snapshot; None: the monitor itself is visible.
    _above: CallTreeScreen | TimeScreen | ProfilesScreen | None = None
    #: Reads the past; None until a screen over time was opened.
    reader: TimeLineReader | None = None

    def draw_again(self) -> None:
        """Draw what changed while a screen was above."""
        raise NotImplementedError

    def above_closed(self, _: None) -> None:
        """Draw the monitor again: at the moment that the user chose above, if any."""
        above, self._above = self._above, None
        if getattr(above, "wants_other", False):
            self._show_other(above)
            return
        self.call_after_refresh(self.draw_again)
        chosen_ns = getattr(above, "chosen_ns", None)
        if chosen_ns is not None:
            self.go_to_time(chosen_ns)

    # Actions, as named in actions.py

    def action_timeline(self) -> None:
        """Show the time line."""
        from locktop.tui.screens.timeline import TimelineScreen

        self._show_over_time(TimelineScreen)

    def action_heat_map(self) -> None:
        """Show the heat map of waiting."""
        from locktop.tui.screens.heat_map import HeatMapScreen

        self._show_over_time(HeatMapScreen)

    def _show_other(self, above: CallTreeScreen | TimeScreen | ProfilesScreen | None) -> None:
        from locktop.tui.screens.heat_map import HeatMapScreen
        from locktop.tui.screens.timeline import TimelineScreen

        view = getattr(above, "view", None)
        is_timeline = isinstance(above, TimelineScreen)
        self._show_over_time(HeatMapScreen if is_timeline else TimelineScreen, view)

    def _show_over_time(self, make: type[TimeScreen], view: TimeView | None = None) -> None:
        """Open a screen; ``view``: what it shows first, None for the newest part."""
        from locktop.collector.recording.time_lines import TimeLineReader

        past = self.past
        if past.moments is None:
            self.show_message("Nothing is kept: --history 0 says so.")
            return
        self.reader = self.reader or TimeLineReader(past.moments, _MAX_RECORDS)
        try:
            screen = make(self.reader, at_ns=past.time_ns, is_replay=past.is_replay, now=self._now)
        except LocktopError as error:
            self.show_message(str(error))
            return
        if view is not None:
            screen.view = view
        self._above = screen
        self.app.push_screen(screen, self.above_closed)
