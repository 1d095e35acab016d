"""Joins keys and actions for Textual, for the line of keys, the help and the list of actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from textual.app import App
from textual.binding import Binding

from locktop.tui.action_groups import TREE
from locktop.tui.action_types import ScreenActions
from locktop.tui.actions import ACTIONS
from locktop.tui.keymap import KeyTable, shipped
from locktop.tui.screen_actions import MONITOR
from locktop.tui.views.styled_line import Line, Span, make_line

#: The actions that open an entry, or the list of actions.
ENTRIES = ("filter", "find", "choose_time", "palette")


@runtime_checkable
class _HasKeys(Protocol):
    """An app whose user may have keys of his own."""

    @property
    def key_table(self) -> KeyTable: ...


def keys_of(app: App[object]) -> KeyTable:
    """The keys that count in an app."""
    return app.key_table if isinstance(app, _HasKeys) else shipped()


def bindings(*actions: str) -> list[Binding]:
    """The bindings of ``actions``, with the keys of this package.

    The name of an action is the id of its binding, by which Textual finds the keys of the user.
    """
    table = shipped()
    return [
        Binding(
            table.textual_keys(name),
            ACTIONS[name].textual_action,
            ACTIONS[name].help,
            show=False,
            # An entry opens before Textual handles the next key, which is for the entry.
            priority=name in ENTRIES,
            id=name,
        )
        for name in dict.fromkeys(actions)
    ]


def textual_keymap(table: KeyTable) -> dict[str, str]:
    """The keys that the user changed, by the ids of their bindings."""
    return {action: table.textual_keys(action) for action in table.changed}


def footer_line(
    width: int,
    actions: Sequence[str] = MONITOR.footer,
    table: KeyTable | None = None,
    labels: Mapping[str, str] | None = None,
) -> Line:
    """The line of keys in ``width`` cells: as many of ``actions`` as fit.

    An action in ``labels`` has that label in place of its usual one.
    """
    labels = labels or {}
    table = table or shipped()
    spans: list[Span | str] = []
    room = width
    for name in actions:
        key, short = f" {table.first_label(name)}", f" {labels.get(name, ACTIONS[name].label)} "
        room -= len(key) + len(short)
        if room < 0:
            break
        spans += [(key, "key"), (short, "label")]
    return make_line(*spans)


def help_lines(
    screen: ScreenActions = MONITOR, table: KeyTable | None = None
) -> list[tuple[str, str]]:
    """The keys of a screen and the meaning of their actions, for the help."""
    return _lines_of(screen.actions, table or shipped())


def tree_help_lines(table: KeyTable | None = None) -> list[tuple[str, str]]:
    """The same for the keys that only trees have."""
    return _lines_of(TREE, table or shipped())


def _lines_of(actions: Sequence[str], table: KeyTable) -> list[tuple[str, str]]:
    return [(table.label(name), ACTIONS[name].help) for name in dict.fromkeys(actions)]
