"""All threads with their stacks: their command, and the key that reads them now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from locktop.tui.extension import ScreenExtension

if TYPE_CHECKING:
    from locktop.tui.extension_parts import Command, MonitorKey


def _commands() -> Sequence[Command]:
    from locktop.tui.extensions.stacks import command

    return (command,)


def _monitor_key() -> MonitorKey:
    from locktop.tui.extensions.stacks.keys import MONITOR_KEY

    return MONITOR_KEY


EXTENSION = ScreenExtension("all_stacks", commands=_commands, monitor_key=_monitor_key)
