"""The key of the monitor that opens the function calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locktop.tui.action_types import Action
from locktop.tui.extension_parts import MonitorKey, View

if TYPE_CHECKING:
    from locktop.tui.screens.view_host import ViewHost


def _view(host: ViewHost) -> View:
    from locktop.tui.extensions.calls.view import CallsView

    return CallsView(host)


MONITOR_KEY = MonitorKey(
    Action("view('calls')", "function calls of an instrumented program"), ("C",), _view
)
