"""The parts of the monitor that the view of an extension uses."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from locktop.tui.feed import SnapshotFeed
from locktop.tui.past import Past
from locktop.tui.widgets.list_screen import ListScreen


class ViewHost(Struct, frozen=True):
    """The screens, the feed and the past of a monitor, for a view above it."""

    monitor: ListScreen
    feed: SnapshotFeed
    past: Past
    now: Callable[[], float]  # a monotonic clock in seconds
    #: Returns the screen that the user sees.
    top: Callable[[], ListScreen]
    #: Shows a screen above the monitor. The function is called when it has closed.
    show: Callable[[ListScreen, Callable[[], None]], None]
