"""A report of an incident as one HTML file: its command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from locktop.tui.extension import ScreenExtension

if TYPE_CHECKING:
    from locktop.tui.extension_parts import Command


def _commands() -> Sequence[Command]:
    from locktop.tui.extensions.report import command

    return (command,)


EXTENSION = ScreenExtension("report", commands=_commands)
