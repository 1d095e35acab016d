"""The actions of the screen of all stacks."""

from __future__ import annotations

from locktop.tui.action_groups import ABOVE, ENDS, FINDING
from locktop.tui.action_types import ScreenActions

SCREEN_ACTIONS = ScreenActions(
    "all stacks",
    (
        "show_stack",
        "read_stacks",
        "save_stacks",
        "save_stacks_text",
        "copy_stacks",
        "zoom",
        *ABOVE,
        *FINDING,
        "next_panel",
        "previous_panel",
        *ENDS,
    ),
    (
        "help",
        "show_stack",
        "read_stacks",
        "back",
        "save_stacks_text",
        "copy_stacks",
        "filter",
        "next_panel",
        "zoom",
        "palette",
        "theme",
    ),
)
