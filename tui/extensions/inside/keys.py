"""The keys of the monitor that open what runs inside a lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locktop.tui.action_types import Action
from locktop.tui.extension_parts import MonitorKey, View
from locktop.tui.extensions.inside.screen_actions import SCREEN_ACTIONS

if TYPE_CHECKING:
    from locktop.tui.screens.view_host import ViewHost


def _view(host: ViewHost) -> View:
    from locktop.tui.extensions.inside.view import InsideView

    return InsideView(host)


MONITOR_KEY = MonitorKey(
    Action("view('inside')", "what runs inside the chosen lock, by samples", "inside"),
    ("I",),
    _view,
    (SCREEN_ACTIONS,),
    {"view_inside": Action("app.go('inside')", "view: what runs inside the chosen lock")},
    {"view_inside": ("0",)},
)
