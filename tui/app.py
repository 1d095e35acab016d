"""The apps of the screen: the monitor, and the call tree of a file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from textual import events, on

from locktop.collector.errors import LocktopError
from locktop.collector.render.formats import CALL_TREE_FORMATS, ResultFormats
from locktop.tui.feed import SnapshotFeed
from locktop.tui.frame_pacer import Pacer
from locktop.tui.input_options import DEFAULT_INPUT, InputOptions
from locktop.tui.keys_elsewhere import is_view, view_of, where_it_works
from locktop.tui.screen_start import ScreenStart
from locktop.tui.screens.elsewhere_reader import ProcessChosen
from locktop.tui.screens.monitor import MonitorScreen
from locktop.tui.terminal.driver import Meter
from locktop.tui.themed_app import ThemedApp
from locktop.tui.views.styled_line import Line, cut, make_line
from locktop.tui.widgets.list_screen import ListScreen
from locktop.tui.widgets.quit_dialog import QuitDialog

if TYPE_CHECKING:
    from locktop.collector.recording.moments import Moments
    from locktop.collector.render.profiles.profile import Profile, Weight
    from locktop.collector.sources.attach import Source
    from locktop.tui.screens.call_tree import CallTreeScreen


class LocktopApp(ThemedApp[int]):
    """The monitor of a live process."""

    TITLE = "locktop"

    def __init__(
        self,
        feed: SnapshotFeed,
        theme: str | None = None,
        *,
        rate: float = 2.0,
        call_tree: tuple[str, bool] | None = None,
        is_own_program: bool = False,
        leave_running: Callable[[], None] | None = None,
        moments: Moments | None = None,
        is_replay: bool = False,
        first_view: str = "",
        start: ScreenStart | None = None,
        attach: Callable[[int], Source] | None = None,
        input_options: InputOptions = DEFAULT_INPUT,
        environ: Mapping[str, str] = os.environ,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make the app, which is not running yet.

        Args:
            feed: where snapshots come from.
            theme: a name, None for a theme that suits the terminal.
            rate: snapshots a second at the start.
            call_tree: begin with the call tree, by this weight, and with idle waits or without.
            is_own_program: whether locktop started the process. If not, a new level is confirmed.
            leave_running: keeps the process when the app ends. The app asks before it quits then.
                None: the app does not ask.
            moments: the memory of the process, or a recording; None: nothing is kept.
            is_replay: whether there is a recording and no process.
            first_view: begin with this view of an extension.
            start: what the screen shows at first; None: the list of locks.
            attach: opens another process, to which the app ends then. None: the app stays.
            input_options: the keys and the mouse.
            environ: the environment variables.
            now: a monotonic clock in seconds.
        """
        super().__init__(theme, Meter(), environ, input_options)
        start = start or ScreenStart()
        self._leave_running = leave_running
        self._open_source = attach
        #: The process that the user wants to watch next.
        self.next_source: Source | None = None
        self._monitor = MonitorScreen(
            feed,
            self.meter,
            Pacer(rate),
            now,
            asks_for_level=not is_own_program,
            moments=moments,
            is_replay=is_replay,
            start=start,
        )
        if call_tree is not None:
            self._monitor.begins_with = partial(self._monitor.action_callers, *call_tree)
        elif first_view:
            self._monitor.begins_with = partial(self._monitor.action_view, first_view)
        elif start.view != "locks":
            self._monitor.begins_with = partial(self._monitor.go, start.view)

    def begin_at(self, text: str) -> None:
        """Begin at a time of the recording. Raises LocktopError for another text."""
        if message := self._monitor.past.go_to(text):
            raise LocktopError(message)

    def get_default_screen(self) -> MonitorScreen:
        """The monitor is the screen below all others."""
        return self._monitor

    def action_go(self, view: str) -> None:
        """Go to a view, from the monitor or from a screen above."""
        above = self._monitor.above
        if self.screen is self._monitor:
            self._monitor.go(view)
        elif above.screen is not None:
            while self.screen is not above.screen and len(self.screen_stack) > 1:
                self.pop_screen()  # what lies over the screen above, such as a difference
            above.leave_for(view)
        else:
            while self.screen is not self._monitor and len(self.screen_stack) > 1:
                self.pop_screen()  # a difference
            self._monitor.go(view)

    def on_key(self, event: events.Key) -> None:
        """Open the view of a key that the screen has no action for, or say where the key works."""
        screen = self.screen
        if not isinstance(screen, ListScreen) or event.key in screen.active_bindings:
            return
        view = "" if screen is self._monitor else view_of(event, self.key_table)
        if view and is_view(screen, view):
            screen.show_message("This view is open already.")
        elif view:
            self.action_go(view)
        elif says := where_it_works(event, self.key_table):
            screen.show_message(says)

    def on_user_signal(self) -> None:
        """Save the snapshot on the screen."""
        self._monitor.action_save("json")

    @on(ProcessChosen)
    def _watch_next(self, event: ProcessChosen) -> None:
        """End, for another process to be watched, or say how to watch it."""
        if self._open_source is None:
            self._monitor.show_message(f"In another terminal: locktop -p {event.pid}")
            return
        try:
            self.next_source = self._open_source(event.pid)
        except LocktopError as error:
            self._monitor.show_error(error)
        else:
            self.exit()

    async def action_quit(self) -> None:
        """Quit; ask before, if that ends a program. Ctrl+C is an answer too."""
        if self._leave_running is None or self._monitor.has_ended:
            self.exit()
        elif isinstance(self.screen, QuitDialog):
            self.screen.dismiss(True)
        else:
            self.push_screen(QuitDialog(self._monitor.process_name), self._quit_answered)

    def _quit_answered(self, ends_program: bool | None) -> None:
        if ends_program is None:
            return
        if not ends_program and self._leave_running is not None:
            self._leave_running()
        self.exit()


class CallTreeApp(ThemedApp[int]):
    """The call tree of a file."""

    TITLE = "locktop"

    def __init__(
        self,
        profile: Profile,
        theme: str | None = None,
        *,
        weight: Weight | None = None,
        idle: bool = False,
        formats: ResultFormats[...] = CALL_TREE_FORMATS,
        input_options: InputOptions = DEFAULT_INPUT,
        environ: Mapping[str, str] = os.environ,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make the app; for ``theme``, ``environ`` and ``now`` see LocktopApp.

        Args:
            profile: what the file has.
            weight: one of the profile's weights, None for its first.
            idle: whether to show waits for work.
            formats: see CallTreeScreen.
            input_options: see LocktopApp.
        """
        from locktop.tui.screens.call_tree import CallTreeScreen

        def title(width: int) -> Line:
            return cut(make_line((f" {profile.title}", "strong")), width)

        super().__init__(theme, Meter(), environ, input_options)
        self._call_tree = CallTreeScreen(
            profile, title, weight=weight, idle=idle, formats=formats, now=now
        )

    def get_default_screen(self) -> CallTreeScreen:
        """The call tree is the only screen."""
        return self._call_tree
