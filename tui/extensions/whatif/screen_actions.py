"""The actions of the screen of predictions."""

from __future__ import annotations

from locktop.tui.action_groups import ABOVE, ALL_VIEWS, ENDS, FINDING
from locktop.tui.action_types import ScreenActions

SCREEN_ACTIONS = ScreenActions(
    "what if",
    (
        "predict",
        "save",
        "save_text",
        *(action for action in ABOVE if action not in ALL_VIEWS),
        *FINDING,
        *ENDS,
    ),
    ("help", "predict", "back", "filter", "save", "palette", "theme"),
)
