"""Keys without an action on the visible screen: the view that each opens, or where it works."""

from __future__ import annotations

from textual import events

from locktop.tui.actions import ACTIONS
from locktop.tui.extension import monitor_keys
from locktop.tui.keymap import KeyTable
from locktop.tui.screen_actions import MONITOR, SCREENS
from locktop.tui.widgets.list_screen import ListScreen

#: The views that actions of the monitor open, beside those of extensions.
_OPENED = {"callers": "callers", "timeline": "timeline", "heat_map": "history"}
_DIGIT = "view_"


def view_of(event: events.Key, table: KeyTable) -> str:
    """The view that a key opens from the monitor; "" if it opens none."""
    for name in _actions(event, table, MONITOR.actions):
        if name.startswith(_DIGIT):
            return name.removeprefix(_DIGIT)
        if name in monitor_keys():
            return name
        return _OPENED.get(name, "")
    return ""


def is_view(screen: ListScreen, view: str) -> bool:
    """Return whether a screen is a view of the monitor."""
    key = monitor_keys().get(view)
    return screen.view_name == view or (key is not None and screen.SCREEN in key.screens)


def where_it_works(event: events.Key, table: KeyTable) -> str:
    """The sentence that says on which screen a key works; "" for a key without any action."""
    for screen in SCREENS:
        for name in _actions(event, table, screen.actions):
            key, says = table.first_label(name), ACTIONS[name].help
            if screen is MONITOR:
                back = table.first_label("back")
                return f"{key} works on the first screen, to which {back} goes: {says}."
            return f"{key} works on the screen “{screen.name}”: {says}."
    return ""


def _actions(event: events.Key, table: KeyTable, names: tuple[str, ...]) -> list[str]:
    """Those of these actions that a key has."""
    keys = {event.key, event.character if event.is_printable else None}
    return [name for name in names if keys & set(table.keys[name])]
