"""The views of the screen by number. Some are parts of the monitor, others are screens above it."""

from __future__ import annotations

from typing import NamedTuple

from locktop.tui.extension import screen_extensions


class MonitorView(NamedTuple):
    """One view."""

    name: str  # of --view, of the setting `view`, and of the action
    digit: str  # its key
    title: str  # in the first line of a wide terminal
    short: str  # in the first line of 80 columns
    #: Whether the view is a part of the monitor. The others are screens of their own.
    is_body: bool = True


VIEWS: tuple[MonitorView, ...] = (
    MonitorView("overview", "1", "Overview", "Over"),
    MonitorView("locks", "2", "Locks", "Locks"),
    MonitorView("threads", "3", "Threads", "Thr"),
    MonitorView("blocking", "4", "Blocking", "Block"),
    MonitorView("deadlocks", "5", "Deadlocks", "Dead"),
    MonitorView("callers", "6", "Callers", "Call", is_body=False),
    MonitorView("details", "7", "Details", "Det"),
    MonitorView("timeline", "8", "Time line", "Time", is_body=False),
    MonitorView("history", "9", "History", "Hist", is_body=False),
    *(
        MonitorView(extension.name, *extension.view_label, is_body=False)
        for extension in screen_extensions()
        if extension.view_label is not None
    ),
)
#: The names that --view and the setting `view` take.
VIEW_NAMES: tuple[str, ...] = tuple(view.name for view in VIEWS)
