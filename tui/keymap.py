"""The keys of each action, in the order of the help and of the line of keys."""

from __future__ import annotations

from msgspec import Struct


class Keys(Struct, frozen=True):
    """The keys of one action."""

    action: str  # a name in actions.ACTIONS
    keys: tuple[str, ...]  # Textual's names
    label: str  # for the help and the line of keys


KEYMAP: tuple[Keys, ...] = (
    Keys("help", ("question_mark", "f1"), "?"),
    Keys("quit", ("q",), "q"),
    Keys("next_panel", ("tab",), "Tab"),
    Keys("previous_panel", ("shift+tab",), "Shift+Tab"),
    Keys("details", ("enter",), "Enter"),
    Keys("back", ("escape",), "Esc"),
    Keys("deadlock", ("d",), "d"),
    Keys("sort", ("s",), "s"),
    Keys("reverse", ("S",), "S"),
    Keys("filter", ("slash",), "/"),
    Keys("idle", ("i",), "i"),
    Keys("callers", ("c",), "c"),
    Keys("timeline", ("T",), "T"),
    Keys("heat_map", ("H",), "H"),
    Keys("level", ("L",), "L"),
    Keys("pause", ("p", "space"), "p Space"),
    Keys("save", ("w",), "w"),
    Keys("save_text", ("W",), "W"),
    Keys("faster", ("plus", "equals_sign"), "+"),
    Keys("slower", ("minus",), "-"),
    Keys("theme", ("t",), "t"),
    Keys("up", ("up", "k"), "Up k"),
    Keys("down", ("down", "j"), "Down j"),
    Keys("page_up", ("pageup", "ctrl+b"), "PgUp"),
    Keys("page_down", ("pagedown", "ctrl+f"), "PgDn"),
    Keys("start", ("home", "g"), "Home g"),
    Keys("end", ("end", "G"), "End G"),
    Keys("expand", ("right", "l"), "Right l"),
    Keys("collapse", ("left", "h"), "Left h"),
)

#: Keys that only the call tree has.
CALL_TREE_KEYMAP: tuple[Keys, ...] = (
    Keys("walk", ("enter",), "Enter"),
    Keys("open", ("right", "l"), "Right l"),
    Keys("close", ("left", "h"), "Left h"),
    Keys("weight", ("v",), "v"),
)

#: The actions of the call tree.
CALL_TREE_ACTIONS: tuple[str, ...] = (
    "help",
    "quit",
    "next_panel",
    "previous_panel",
    "back",
    "filter",
    "idle",
    "pause",
    "save",
    "save_text",
    "theme",
    "up",
    "down",
    "page_up",
    "page_down",
    "start",
    "end",
    *(keys.action for keys in CALL_TREE_KEYMAP),
)
CALL_TREE_FOOTER: tuple[str, ...] = (
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
    "theme",
)

#: The line of keys shows as many of these as fit.
FOOTER: tuple[str, ...] = (
    "help",
    "quit",
    "next_panel",
    "details",
    "back",
    "sort",
    "filter",
    "save",
    "pause",
    "idle",
    "deadlock",
    "level",
    "callers",
    "timeline",
    "reverse",
    "theme",
    "expand",
)

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
_OF_BOTH: tuple[str, ...] = (
    "help",
    "quit",
    "back",
    "filter",
    "idle",
    "theme",
    "up",
    "down",
    "page_up",
    "page_down",
)
_MOVES: tuple[str, ...] = tuple(keys.action for keys in TIMELINE_KEYMAP[:9])
TIMELINE_ACTIONS: tuple[str, ...] = (*_OF_BOTH, *(keys.action for keys in TIMELINE_KEYMAP))
HEAT_MAP_ACTIONS: tuple[str, ...] = (
    *_OF_BOTH,
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
DIFFERENCE_ACTIONS: tuple[str, ...] = (
    "help",
    "quit",
    "back",
    "filter",
    "theme",
    "up",
    "down",
    "page_up",
    "page_down",
    "start",
    "end",
)
DIFFERENCE_FOOTER: tuple[str, ...] = ("help", "quit", "back", "filter", "theme")
