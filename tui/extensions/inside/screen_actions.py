"""The actions of the screen of what runs inside a lock."""

from __future__ import annotations

from locktop.tui.action_groups import CALL_TREE_ACTIONS
from locktop.tui.action_types import ScreenActions

SCREEN_ACTIONS = ScreenActions(
    "inside of a lock",
    (*(action for action in CALL_TREE_ACTIONS if action != "idle"), "sort"),
    (
        "help",
        "quit",
        "next_panel",
        "walk",
        "back",
        "open",
        "sort",
        "weight",
        "filter",
        "save",
        "pause",
        "palette",
        "theme",
    ),
)
