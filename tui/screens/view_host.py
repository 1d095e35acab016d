"""The parts of the monitor that the view of an extension uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from locktop.tui.feed import SnapshotFeed
from locktop.tui.past import Past
from locktop.tui.screens.past_travel import PastTravel
from locktop.tui.views.styled_line import Line
from locktop.tui.widgets.list_screen import ListScreen

if TYPE_CHECKING:
    from locktop.tui.screens.call_tree import StatusLine


class Below(NamedTuple):
    """The parts of the monitor that the screen above uses."""

    status: StatusLine  # the second line, for a width
    flags: Callable[[], Line]  # the right end of the second line
    pause: Callable[[], None]
    travel: PastTravel
    #: The user is back, with the moment that he chose, or None; and goes on to a view, or "".
    closed: Callable[[int | None, str], None]


class ViewHost(Struct, frozen=True):
    """The screens, the feed and the past of a monitor, for a view above it."""

    monitor: ListScreen
    feed: SnapshotFeed
    past: Past
    below: Below
    now: Callable[[], float]  # a monotonic clock in seconds
    #: Returns the screen that the user sees.
    top: Callable[[], ListScreen]
    #: Shows a screen above the monitor. The function is called when it has closed.
    show: Callable[[ListScreen, Callable[[], None]], None]
