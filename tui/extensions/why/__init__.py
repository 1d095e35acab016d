"""Why a process hangs, across processes: the command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from locktop.tui.extension import ScreenExtension

if TYPE_CHECKING:
    from locktop.tui.extension_parts import Command


def _commands() -> Sequence[Command]:
    from locktop.tui.extensions.why import command

    return (command,)


EXTENSION = ScreenExtension("why", commands=_commands)
