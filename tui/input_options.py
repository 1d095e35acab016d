"""The settings of the keys and of the mouse."""

from __future__ import annotations

from msgspec import Struct


class InputOptions(Struct, frozen=True):
    """The settings of the input, for any app."""

    keymap: str = ""  # the file of the user's keys, "" for none
    #: Whether the terminal reports clicks. Then the terminal selects text only with Shift.
    mouse: bool = False


DEFAULT_INPUT = InputOptions()
