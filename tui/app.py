"""The apps of the screen: the monitor, and the call tree of a file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from locktop.tui.feed import SnapshotFeed
from locktop.tui.frame_pacer import Pacer
from locktop.tui.screens.monitor import MonitorScreen
from locktop.tui.terminal.driver import Meter
from locktop.tui.themed_app import ThemedApp
from locktop.tui.views.styled_line import Line, cut, make_line

if TYPE_CHECKING:
    from locktop.collector.profile.profile import Profile, Weight
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
        environ: Mapping[str, str] = os.environ,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make the app, which is not running yet.

        Args:
            feed: where snapshots come from.
            theme: a name, None for a theme that suits the terminal.
            rate: snapshots a second at the start.
            call_tree: begin with the call tree, by this weight, and with idle waits or without.
            environ: the environment variables.
            now: a monotonic clock in seconds.
        """
        super().__init__(theme, Meter(), environ)
        self._monitor = MonitorScreen(feed, self.meter, Pacer(rate), now, call_tree)

    def get_default_screen(self) -> MonitorScreen:
        """The monitor is the screen below all others."""
        return self._monitor


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
        environ: Mapping[str, str] = os.environ,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make the app; for ``theme``, ``environ`` and ``now`` see LocktopApp.

        Args:
            profile: what the file has.
            weight: one of the profile's weights, None for its first.
            idle: whether to show waits for work.
        """
        from locktop.tui.screens.call_tree import CallTreeScreen

        def title(width: int) -> Line:
            return cut(make_line((f" {profile.title}", "strong")), width)

        super().__init__(theme, Meter(), environ)
        self._call_tree = CallTreeScreen(profile, title, weight=weight, idle=idle, now=now)

    def get_default_screen(self) -> CallTreeScreen:
        """The call tree is the only screen."""
        return self._call_tree
