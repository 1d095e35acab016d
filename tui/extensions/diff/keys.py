"""The key of the monitor that compares the user's last mark with now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locktop.tui.action_types import Action
from locktop.tui.extension_parts import MonitorKey, View

if TYPE_CHECKING:
    from locktop.tui.screens.view_host import ViewHost


def _view(host: ViewHost) -> View:
    from locktop.tui.extensions.diff.view import DiffView

    return DiffView(host)


MONITOR_KEY = MonitorKey(
    Action("view('diff')", "what changed since the last mark, beside the time before"),
    ("D",),
    _view,
)
