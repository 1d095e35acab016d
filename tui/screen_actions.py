"""The actions of each screen, in the order of the help, and of the line of keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from locktop.tui.action_groups import (
    ABOVE,
    ALL_VIEWS,
    CALL_TREE_ACTIONS,
    COPYING,
    ENDS,
    FINDING,
    MOVES,
    PAST_ENDS,
    STEPS,
)
from locktop.tui.action_types import ScreenActions
from locktop.tui.extension import monitor_keys
from locktop.tui.monitor_views import VIEW_NAMES

#: The views of extensions that have a digit, and the others.
_NUMBERED: tuple[str, ...] = tuple(name for name in monitor_keys() if name in VIEW_NAMES)
_OTHERS: tuple[str, ...] = tuple(name for name in monitor_keys() if name not in VIEW_NAMES)


def _footer_names(views: Iterable[str]) -> Iterator[str]:
    """Yield those that the line of keys shows."""
    return (name for name in views if monitor_keys()[name].action.label)


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
        *FINDING,
        "columns",
        "views",
        "idle",
        "callers",
        *_NUMBERED,
        "timeline",
        "heat_map",
        *_OTHERS,
        "level",
        "start_session",
        "stop_session",
        "pause",
        *STEPS,
        "mark",
        "names",
        "choose_time",
        "save",
        "save_text",
        "save_past",
        *COPYING,
        "edit",
        "faster",
        "slower",
        "theme",
        "mouse",
        *ALL_VIEWS,
        *MOVES,
        *ENDS,
        *PAST_ENDS,
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
        *_footer_names(_NUMBERED),
        "step_back",
        "jump_back",
        "timeline",
        *_footer_names(_OTHERS),
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
    *STEPS,
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

CALL_TREE = ScreenActions(
    "call tree",
    CALL_TREE_ACTIONS,
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
        *ABOVE,
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
        "open_class",
        "span_difference",
        *ABOVE,
        "copy_details",
        *FINDING,
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
        "open_class",
        "whole",
        "palette",
    ),
)
DIFFERENCE = ScreenActions(
    "difference of two spans",
    (*ABOVE, *FINDING, *ENDS),
    ("help", "quit", "back", "filter", "palette", "theme"),
)
PICKER = ScreenActions(
    "list of processes",
    (
        "help",
        "pick",
        "filter",
        "rescan",
        "everything",
        "palette",
        "quit",
        *FINDING,
        "copy_row",
        "theme",
        "mouse",
        *MOVES,
        *ENDS,
        *PAST_ENDS,
    ),
    ("help", "pick", "filter", "rescan", "everything", "quit", "palette"),
)

SCREENS: tuple[ScreenActions, ...] = (
    MONITOR,
    CALL_TREE,
    TIMELINE,
    HEAT_MAP,
    DIFFERENCE,
    PICKER,
    *(screen for key in monitor_keys().values() for screen in key.screens),
)
