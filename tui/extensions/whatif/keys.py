"""The key of the monitor that opens the predictions, and the keys of their screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locktop.tui.action_types import Action
from locktop.tui.extension_parts import MonitorKey, View
from locktop.tui.extensions.whatif.screen_actions import SCREEN_ACTIONS

if TYPE_CHECKING:
    from locktop.tui.screens.view_host import ViewHost


def _view(host: ViewHost) -> View:
    from locktop.tui.extensions.whatif.view import WhatIfView

    return WhatIfView(host)


MONITOR_KEY = MonitorKey(
    Action("view('whatif')", "what a change of the locks would gain", "what if"),
    ("U",),
    _view,
    (SCREEN_ACTIONS,),
    {
        "predict": Action(
            "predict", "record all holds, and predict; in a replay: predict", "predict"
        )
    },
    {"predict": ("enter",)},
)
