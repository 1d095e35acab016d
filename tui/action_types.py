"""The types of actions and of the keys of a screen, and the groups of actions that recur."""

from __future__ import annotations

from typing import NamedTuple

from locktop.tui.monitor_views import VIEWS


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


ALL_VIEWS: tuple[str, ...] = tuple(f"view_{view.name}" for view in VIEWS)
COPYING: tuple[str, ...] = ("copy_row", "copy_details", "copy_report")
FINDING: tuple[str, ...] = ("find", "find_next", "find_previous")
MOVES: tuple[str, ...] = (
    "up",
    "down",
    "page_up",
    "page_down",
    "half_page_up",
    "half_page_down",
)
ENDS: tuple[str, ...] = ("start", "end")
PAST_ENDS: tuple[str, ...] = ("oldest", "newest")
STEPS: tuple[str, ...] = ("step_back", "step_forth", "jump_back", "jump_forth")

#: The actions of every screen above the monitor.
ABOVE: tuple[str, ...] = (
    *ALL_VIEWS,
    "help",
    "palette",
    "quit",
    "back",
    "filter",
    "copy_row",
    "theme",
    "mouse",
    *MOVES,
)
