"""The types of actions and of the keys of a screen."""

from __future__ import annotations

from typing import NamedTuple


class Action(NamedTuple):
    """One action of the screen."""

    textual_action: str  # the name by which Textual runs it
    help: str  # what the help says
    label: str = ""  # in the line of keys, "" = not there


class ScreenActions(NamedTuple):
    """The actions of one screen, by their names in actions.ACTIONS."""

    name: str  # of the screen, for messages
    actions: tuple[str, ...]  # in the order of the help
    footer: tuple[str, ...]  # the line of keys shows as many of these as fit
