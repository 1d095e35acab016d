"""Joins keys and actions for Textual, for the line of keys and for the help."""

from __future__ import annotations

from collections.abc import Sequence

from textual.binding import Binding

from locktop.tui.actions import ACTIONS
from locktop.tui.keymap import CALL_TREE_KEYMAP, FOOTER, KEYMAP
from locktop.tui.time_keymap import (
    HEAT_MAP_ACTIONS,
    HEAT_MAP_KEYMAP,
    PROFILES_ACTIONS,
    PROFILES_KEYMAP,
    TIMELINE_ACTIONS,
    TIMELINE_KEYMAP,
)
from locktop.tui.views.styled_line import Line, Span, make_line

_ALL_KEYS = (*KEYMAP, *CALL_TREE_KEYMAP, *TIMELINE_KEYMAP, *HEAT_MAP_KEYMAP, *PROFILES_KEYMAP)


def bindings(*actions: str) -> list[Binding]:
    """The bindings of ``actions``, without any those of the monitor screen."""
    return [
        Binding(
            ",".join(keys.keys),
            ACTIONS[keys.action].textual_action,
            ACTIONS[keys.action].help,
            show=False,
            # An entry opens before Textual handles the next key, which is for the entry.
            priority=keys.action in ("filter", "choose_time"),
        )
        for keys in _ALL_KEYS
        if keys.action in actions or (not actions and keys in KEYMAP)
    ]


def footer_line(width: int, actions: Sequence[str] = FOOTER) -> Line:
    """The line of keys in ``width`` cells: as many of ``actions`` as fit."""
    key_labels = {keys.action: keys.label.split()[0] for keys in _ALL_KEYS}
    spans: list[Span | str] = []
    room = width
    for name in actions:
        key, short = f" {key_labels[name]}", f" {ACTIONS[name].label} "
        room -= len(key) + len(short)
        if room < 0:
            break
        spans += [(key, "key"), (short, "label")]
    return make_line(*spans)


def help_lines() -> list[tuple[str, str]]:
    """The keys and their actions, for the help."""
    return [(keys.label, ACTIONS[keys.action].help) for keys in KEYMAP]


def call_tree_help_lines() -> list[tuple[str, str]]:
    """The same for the keys that only the call tree has."""
    return [(keys.label, ACTIONS[keys.action].help) for keys in CALL_TREE_KEYMAP]


def timeline_help_lines() -> list[tuple[str, str]]:
    """The keys of the time line and their actions, for its help."""
    return _lines_of(TIMELINE_ACTIONS)


def heat_map_help_lines() -> list[tuple[str, str]]:
    """The same for the heat map."""
    return _lines_of(HEAT_MAP_ACTIONS)


def profiles_help_lines() -> list[tuple[str, str]]:
    """The same for the profiles of a program's own code."""
    return _lines_of(PROFILES_ACTIONS)


def _lines_of(actions: Sequence[str]) -> list[tuple[str, str]]:
    found = [keys for keys in _ALL_KEYS if keys.action in actions]
    # The keys that the screen alone has come first.
    found.sort(key=lambda keys: keys in KEYMAP)
    return [(keys.label, ACTIONS[keys.action].help) for keys in found]
