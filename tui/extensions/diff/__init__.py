"""Differences: their command, and the key that compares a mark with now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from locktop.tui.extension import ScreenExtension, SnapshotOption

if TYPE_CHECKING:
    from locktop.tui.extension_parts import Command, MonitorKey, SnapshotSource


def _commands() -> Sequence[Command]:
    from locktop.tui.extensions.diff import command

    return (command,)


def _monitor_key() -> MonitorKey:
    from locktop.tui.extensions.diff.keys import MONITOR_KEY

    return MONITOR_KEY


def _load() -> SnapshotSource:
    from locktop.tui.extensions.diff import snapshot_option

    return snapshot_option


EXTENSION = ScreenExtension(
    "diff",
    commands=_commands,
    monitor_key=_monitor_key,
    snapshot_option=SnapshotOption(
        "of a recording: what changed since A, a snapshot or a recording", _load, metavar="A"
    ),
)
