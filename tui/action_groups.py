"""The groups of actions that recur in screens."""

from __future__ import annotations

from locktop.tui.monitor_views import VIEWS

ALL_VIEWS: tuple[str, ...] = tuple(f"view_{view.name}" for view in VIEWS)
COPYING: tuple[str, ...] = ("copy_row", "copy_details", "copy_report")
FINDING: tuple[str, ...] = ("find", "find_next", "find_previous")
MOVES: tuple[str, ...] = (
    "up",
    "down",
    "page_up",
    "page_down",
    "half_page_up",
    "half_page_down",
)
ENDS: tuple[str, ...] = ("start", "end")
PAST_ENDS: tuple[str, ...] = ("oldest", "newest")
STEPS: tuple[str, ...] = ("step_back", "step_forth", "jump_back", "jump_forth")

#: The actions of every screen above the monitor.
ABOVE: tuple[str, ...] = (
    *ALL_VIEWS,
    "help",
    "palette",
    "quit",
    "back",
    "filter",
    "copy_row",
    "theme",
    "mouse",
    *MOVES,
)

#: The actions that only trees have.
TREE: tuple[str, ...] = ("walk", "open", "close", "weight")
#: The actions of a screen with a call tree.
CALL_TREE_ACTIONS: tuple[str, ...] = (
    *TREE,
    *ABOVE,
    *FINDING,
    "copy_report",
    "edit",
    "next_panel",
    "previous_panel",
    "idle",
    "pause",
    "save",
    "save_text",
    *ENDS,
    *PAST_ENDS,
    *STEPS,
)
