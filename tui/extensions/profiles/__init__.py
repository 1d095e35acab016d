"""Profiles that a program makes of its own code: their command and their screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from locktop.tui.extension import ScreenExtension

if TYPE_CHECKING:
    from locktop.tui.extension_parts import Command, MonitorKey


def _commands() -> Sequence[Command]:
    from locktop.tui.extensions.profiles import command

    return (command,)


def _monitor_key() -> MonitorKey:
    from locktop.tui.extensions.profiles.keys import MONITOR_KEY

    return MONITOR_KEY


EXTENSION = ScreenExtension("profiles", commands=_commands, monitor_key=_monitor_key)
