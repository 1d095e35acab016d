"""The keys of each action, in the order of the help and of the line of keys."""

from __future__ import annotations

from msgspec import Struct

from locktop.tui.monitor_views import VIEWS


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
    Keys("zoom", ("z",), "z"),
    Keys("deadlock", ("d",), "d"),
    Keys("sort", ("s",), "s"),
    Keys("reverse", ("S",), "S"),
    Keys("filter", ("slash",), "/"),
    Keys("columns", ("o",), "o"),
    Keys("views", ("v",), "v"),
    Keys("idle", ("i",), "i"),
    Keys("callers", ("c",), "c"),
    Keys("inside", ("I",), "I"),
    Keys("calls", ("C",), "C"),
    Keys("timeline", ("T",), "T"),
    Keys("heat_map", ("H",), "H"),
    Keys("profiles", ("P",), "P"),
    Keys("level", ("L",), "L"),
    Keys("start_session", ("R",), "R"),
    Keys("stop_session", ("E",), "E"),
    Keys("pause", ("p", "space"), "p Space"),
    Keys("step_back", ("left_square_bracket",), "["),
    Keys("step_forth", ("right_square_bracket",), "]"),
    Keys("jump_back", ("left_curly_bracket",), "{"),
    Keys("jump_forth", ("right_curly_bracket",), "}"),
    Keys("mark", ("m",), "m"),
    Keys("compare", ("D",), "D"),
    Keys("choose_time", ("colon",), ":"),
    Keys("save", ("w",), "w"),
    Keys("save_text", ("W",), "W"),
    Keys("save_past", ("M",), "M"),
    Keys("faster", ("plus", "equals_sign"), "+"),
    Keys("slower", ("minus",), "-"),
    Keys("theme", ("t",), "t"),
    *(Keys(f"view_{view.name}", (view.digit,), view.digit) for view in VIEWS),
    Keys("up", ("up", "k"), "Up k"),
    Keys("down", ("down", "j"), "Down j"),
    Keys("page_up", ("pageup", "ctrl+b"), "PgUp"),
    Keys("page_down", ("pagedown", "ctrl+f"), "PgDn"),
    Keys("start", ("g",), "g"),
    Keys("end", ("G",), "G"),
    Keys("oldest", ("home",), "Home"),
    Keys("newest", ("end",), "End"),
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

#: The actions of each screen over the monitor.
LIST_ACTIONS: tuple[str, ...] = (
    *(f"view_{view.name}" for view in VIEWS),
    "help",
    "quit",
    "back",
    "filter",
    "theme",
    "up",
    "down",
    "page_up",
    "page_down",
)
#: The actions of the call tree.
CALL_TREE_ACTIONS: tuple[str, ...] = (
    *LIST_ACTIONS,
    "next_panel",
    "previous_panel",
    "idle",
    "pause",
    "save",
    "save_text",
    "start",
    "end",
    "oldest",
    "newest",
    "step_back",
    "step_forth",
    "jump_back",
    "jump_forth",
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

#: The actions of the screen of what runs inside a lock.
INSIDE_ACTIONS: tuple[str, ...] = (
    *(action for action in CALL_TREE_ACTIONS if action != "idle"),
    "sort",
)
INSIDE_FOOTER: tuple[str, ...] = (
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
    "inside",
    "step_back",
    "jump_back",
    "timeline",
    "reverse",
    "theme",
    "expand",
)

#: The same while the screen shows a moment of the past.
PAST_FOOTER: tuple[str, ...] = (
    "help",
    "quit",
    "step_back",
    "step_forth",
    "jump_back",
    "jump_forth",
    "newest",
    "pause",
    "mark",
    "choose_time",
    "next_panel",
    "details",
    "save",
    "callers",
)
