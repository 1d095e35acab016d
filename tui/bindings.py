"""Joins keys and actions: for Textual, for the line of keys and for the help."""

from __future__ import annotations

from collections.abc import Sequence

from textual.binding import Binding

from locktop.tui.actions import ACTIONS
from locktop.tui.keymap import CALLERS_KEYMAP, FOOTER, KEYMAP
from locktop.tui.views.styled_line import Line, Run, say


def bindings(*actions: str) -> list[Binding]:
    """The bindings of ``actions``; without any, all: those of the monitor screen."""
    return [
        Binding(
            ",".join(keys.keys),
            ACTIONS[keys.action].call,
            ACTIONS[keys.action].says,
            show=False,
            # Done before the next key is looked at: that one is for the filter already.
            priority=keys.action == "filter",
        )
        for keys in (*KEYMAP, *CALLERS_KEYMAP)
        if keys.action in actions or (not actions and keys in KEYMAP)
    ]


def footer_line(width: int, actions: Sequence[str] = FOOTER) -> Line:
    """The line of keys, in ``width`` cells: those of ``actions``, as many as fit."""
    shown = {keys.action: keys.shown.split()[0] for keys in (*KEYMAP, *CALLERS_KEYMAP)}
    runs: list[Run | str] = []
    room = width
    for name in actions:
        key, short = f" {shown[name]}", f" {ACTIONS[name].short} "
        room -= len(key) + len(short)
        if room < 0:
            break
        runs += [(key, "key"), (short, "label")]
    return say(*runs)


def help_lines() -> list[tuple[str, str]]:
    """Keys and what they do, for the help."""
    return [(keys.shown, ACTIONS[keys.action].says) for keys in KEYMAP]


def callers_help_lines() -> list[tuple[str, str]]:
    """The same of the keys that only the view of callers has."""
    return [(keys.shown, ACTIONS[keys.action].says) for keys in CALLERS_KEYMAP]
