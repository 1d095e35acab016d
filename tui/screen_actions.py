"""The actions of each screen, in the order of the help, and of the line of keys."""

from __future__ import annotations

from msgspec import Struct

from locktop.tui.monitor_views import VIEWS


class ScreenActions(Struct, frozen=True):
    """The actions of one screen, by their names in actions.ACTIONS."""

    name: str  # of the screen, for messages
    actions: tuple[str, ...]  # in the order of the help
    footer: tuple[str, ...]  # the line of keys shows as many of these as fit


_VIEWS: tuple[str, ...] = tuple(f"view_{view.name}" for view in VIEWS)
_COPYING: tuple[str, ...] = ("copy_row", "copy_details", "copy_report")
_FINDING: tuple[str, ...] = ("find", "find_next", "find_previous")
_MOVES: tuple[str, ...] = (
    "up",
    "down",
    "page_up",
    "page_down",
    "half_page_up",
    "half_page_down",
)
_ENDS: tuple[str, ...] = ("start", "end")
_PAST_ENDS: tuple[str, ...] = ("oldest", "newest")
_STEPS: tuple[str, ...] = ("step_back", "step_forth", "jump_back", "jump_forth")

MONITOR = ScreenActions(
    "monitor",
    (
        "help",
        "palette",
        "quit",
        "next_panel",
        "previous_panel",
        "details",
        "back",
        "zoom",
        "deadlock",
        "sort",
        "reverse",
        "filter",
        *_FINDING,
        "columns",
        "views",
        "idle",
        "callers",
        "inside",
        "whatif",
        "calls",
        "timeline",
        "heat_map",
        "profiles",
        "level",
        "start_session",
        "stop_session",
        "pause",
        *_STEPS,
        "mark",
        "compare",
        "names",
        "choose_time",
        "save",
        "save_text",
        "save_past",
        *_COPYING,
        "edit",
        "faster",
        "slower",
        "theme",
        "mouse",
        *_VIEWS,
        *_MOVES,
        *_ENDS,
        *_PAST_ENDS,
        "expand",
        "collapse",
    ),
    (
        "help",
        "quit",
        "next_panel",
        "details",
        "back",
        "sort",
        "filter",
        "save",
        "pause",
        "palette",
        "idle",
        "deadlock",
        "level",
        "callers",
        "inside",
        "step_back",
        "jump_back",
        "timeline",
        "whatif",
        "copy_row",
        "edit",
        "find",
        "reverse",
        "theme",
        "expand",
    ),
)
#: The line of keys of the monitor while it shows a moment of the past.
PAST_FOOTER: tuple[str, ...] = (
    "help",
    "quit",
    *_STEPS,
    "newest",
    "pause",
    "mark",
    "choose_time",
    "next_panel",
    "details",
    "save",
    "palette",
    "callers",
)

#: The actions of every screen above the monitor.
_ABOVE: tuple[str, ...] = (
    *_VIEWS,
    "help",
    "palette",
    "quit",
    "back",
    "filter",
    "copy_row",
    "theme",
    "mouse",
    *_MOVES,
)
#: The actions that only trees have.
TREE: tuple[str, ...] = ("walk", "open", "close", "weight")

CALL_TREE = ScreenActions(
    "call tree",
    (
        *TREE,
        *_ABOVE,
        *_FINDING,
        "copy_report",
        "edit",
        "next_panel",
        "previous_panel",
        "idle",
        "pause",
        "save",
        "save_text",
        *_ENDS,
        *_PAST_ENDS,
        *_STEPS,
    ),
    (
        "help",
        "quit",
        "walk",
        "back",
        "open",
        "close",
        "weight",
        "idle",
        "filter",
        "save",
        "pause",
        "palette",
        "theme",
    ),
)
INSIDE = ScreenActions(
    "inside of a lock",
    (*(action for action in CALL_TREE.actions if action != "idle"), "sort"),
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

#: The actions that only the time line and the heat map have.
_TIME: tuple[str, ...] = (
    "earlier",
    "later",
    "pan_earlier",
    "pan_later",
    "zoom_in",
    "zoom_out",
    "whole",
    "first_time",
    "last_time",
)
TIMELINE = ScreenActions(
    "time line",
    (
        *_TIME,
        "next_event",
        "previous_event",
        "woken_by",
        "woke",
        "notable_before",
        "notable_after",
        "letters",
        "to_moment",
        *_ABOVE,
        "copy_details",
        "idle",
        "heat_map",
    ),
    (
        "help",
        "zoom_in",
        "zoom_out",
        "later",
        "next_event",
        "woken_by",
        "woke",
        "to_moment",
        "back",
        "letters",
        "whole",
        "notable_after",
        "idle",
        "palette",
    ),
)
HEAT_MAP = ScreenActions(
    "heat map",
    (
        *_TIME,
        "rows",
        "offsets",
        "choose_span",
        "span_callers",
        "span_difference",
        *_ABOVE,
        "copy_details",
        *_FINDING,
        "idle",
        "timeline",
    ),
    (
        "help",
        "choose_span",
        "span_callers",
        "span_difference",
        "rows",
        "offsets",
        "zoom_in",
        "zoom_out",
        "back",
        "whole",
        "palette",
    ),
)
DIFFERENCE = ScreenActions(
    "difference of two spans",
    (*_ABOVE, *_FINDING, *_ENDS),
    ("help", "quit", "back", "filter", "palette", "theme"),
)
PROFILES = ScreenActions(
    "profiles",
    (
        "show_profile",
        "choose_profile",
        "save_profile",
        "save_profile_text",
        *(action for action in _ABOVE if action not in _VIEWS),
        *_FINDING,
        "copy_details",
        "next_panel",
        "previous_panel",
        *_ENDS,
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
WHATIF = ScreenActions(
    "what if",
    (
        "predict",
        "save",
        "save_text",
        *(action for action in _ABOVE if action not in _VIEWS),
        *_FINDING,
        *_ENDS,
    ),
    ("help", "predict", "back", "filter", "save", "palette", "theme"),
)
PICKER = ScreenActions(
    "list of processes",
    (
        "pick",
        "filter",
        "rescan",
        "everything",
        "palette",
        "quit",
        *_FINDING,
        "copy_row",
        "theme",
        "mouse",
        *_MOVES,
        *_ENDS,
        *_PAST_ENDS,
    ),
    ("pick", "filter", "rescan", "everything", "quit", "palette"),
)

SCREENS: tuple[ScreenActions, ...] = (
    MONITOR,
    CALL_TREE,
    INSIDE,
    TIMELINE,
    HEAT_MAP,
    DIFFERENCE,
    PROFILES,
    WHATIF,
    PICKER,
)
