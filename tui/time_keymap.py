"""The keys of the screens above the monitor: time line, heat map, difference, and profiles."""

from __future__ import annotations

from locktop.tui.keymap import LIST_ACTIONS, Keys

#: Keys that only the time line and the heat map have.
TIMELINE_KEYMAP: tuple[Keys, ...] = (
    Keys("earlier", ("left", "h"), "Left h"),
    Keys("later", ("right", "l"), "Right l"),
    Keys("pan_earlier", ("less_than_sign", "shift+left"), "<"),
    Keys("pan_later", ("greater_than_sign", "shift+right"), ">"),
    Keys("zoom_in", ("plus", "equals_sign"), "+"),
    Keys("zoom_out", ("minus",), "-"),
    Keys("whole", ("a",), "a"),
    Keys("first_time", ("home",), "Home"),
    Keys("last_time", ("end",), "End"),
    Keys("next_event", ("n",), "n"),
    Keys("previous_event", ("N",), "N"),
    Keys("woken_by", ("f",), "f"),
    Keys("woke", ("F",), "F"),
    Keys("notable_before", ("left_curly_bracket",), "{"),
    Keys("notable_after", ("right_curly_bracket",), "}"),
    Keys("letters", ("v",), "v"),
    Keys("to_moment", ("enter",), "Enter"),
)
HEAT_MAP_KEYMAP: tuple[Keys, ...] = (
    Keys("rows", ("v",), "v"),
    Keys("offsets", ("o",), "o"),
    Keys("choose_span", ("m", "space"), "m Space"),
    Keys("span_callers", ("c", "enter"), "c Enter"),
    Keys("span_difference", ("d",), "d"),
)

#: The actions of the time line and of the heat map.
_OF_BOTH: tuple[str, ...] = (*LIST_ACTIONS, "idle")
_MOVES: tuple[str, ...] = tuple(keys.action for keys in TIMELINE_KEYMAP[:9])
TIMELINE_ACTIONS: tuple[str, ...] = (
    *_OF_BOTH,
    "heat_map",
    *(keys.action for keys in TIMELINE_KEYMAP),
)
HEAT_MAP_ACTIONS: tuple[str, ...] = (
    *_OF_BOTH,
    "timeline",
    *_MOVES,
    *(keys.action for keys in HEAT_MAP_KEYMAP),
)
TIMELINE_FOOTER: tuple[str, ...] = (
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
)
HEAT_MAP_FOOTER: tuple[str, ...] = (
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
)

#: The actions of the difference of two spans.
DIFFERENCE_ACTIONS: tuple[str, ...] = (*LIST_ACTIONS, "start", "end")
DIFFERENCE_FOOTER: tuple[str, ...] = ("help", "quit", "back", "filter", "theme")

#: Keys that only the screen of profiles has.
PROFILES_KEYMAP: tuple[Keys, ...] = (
    Keys("show_profile", ("enter",), "Enter"),
    Keys("choose_profile", ("m", "space"), "m Space"),
    Keys("save_profile", ("w",), "w"),
    Keys("save_profile_text", ("W",), "W"),
)
PROFILES_ACTIONS: tuple[str, ...] = (
    "help",
    "quit",
    "next_panel",
    "previous_panel",
    "back",
    "filter",
    "theme",
    "up",
    "down",
    "page_up",
    "page_down",
    "start",
    "end",
    *(keys.action for keys in PROFILES_KEYMAP),
)
PROFILES_FOOTER: tuple[str, ...] = (
    "help",
    "show_profile",
    "choose_profile",
    "save_profile",
    "back",
    "next_panel",
    "filter",
    "theme",
)
