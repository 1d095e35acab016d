"""The actions of the screen of profiles."""

from __future__ import annotations

from locktop.tui.action_groups import ABOVE, ALL_VIEWS, ENDS, FINDING
from locktop.tui.action_types import ScreenActions

SCREEN_ACTIONS = ScreenActions(
    "profiles",
    (
        "show_profile",
        "choose_profile",
        "save_profile",
        "save_profile_text",
        *(action for action in ABOVE if action not in ALL_VIEWS),
        *FINDING,
        "copy_details",
        "next_panel",
        "previous_panel",
        *ENDS,
    ),
    (
        "help",
        "show_profile",
        "choose_profile",
        "save_profile",
        "back",
        "next_panel",
        "filter",
        "palette",
        "theme",
    ),
)
