"""Function calls: their command, the options of other commands, and their screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from locktop.tui.extension import ControlSwitch, ScreenExtension, SnapshotOption

if TYPE_CHECKING:
    from locktop.tui.extension_parts import Command, MonitorKey


def _commands() -> Sequence[Command]:
    from locktop.tui.extensions.calls import command

    return (command,)


def _switch(pid: int, wanted: bool) -> str:
    from locktop.collector.extensions.calls import switch

    return switch.switch(pid, wanted)


def _monitor_key() -> MonitorKey:
    from locktop.tui.extensions.calls.keys import MONITOR_KEY

    return MONITOR_KEY


EXTENSION = ScreenExtension(
    "calls",
    commands=_commands,
    snapshot_option=SnapshotOption("with the function calls"),
    control_switch=ControlSwitch(
        "count function calls, or not",
        "--calls is for programs that were built with -finstrument-functions.",
        _switch,
    ),
    monitor_key=_monitor_key,
)
