"""The command that compares two builds of a program by their locks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from locktop.tui.extension import ScreenExtension

if TYPE_CHECKING:
    from locktop.tui.extension_parts import Command


def _commands() -> Sequence[Command]:
    from locktop.tui.extensions.gate import command

    return (command,)


EXTENSION = ScreenExtension("gate", commands=_commands)
