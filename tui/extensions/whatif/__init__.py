"""What-if: its command, its option of `locktop snapshot`, and its screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from locktop.tui.extension import ScreenExtension, SnapshotOption

if TYPE_CHECKING:
    from locktop.tui.extension_parts import Command, MonitorKey, SnapshotSource


def _commands() -> Sequence[Command]:
    from locktop.tui.extensions.whatif import command

    return (command,)


def _snapshot_source() -> SnapshotSource:
    from locktop.tui.extensions.whatif import snapshot_option

    return snapshot_option


def _monitor_key() -> MonitorKey:
    from locktop.tui.extensions.whatif.keys import MONITOR_KEY

    return MONITOR_KEY


EXTENSION = ScreenExtension(
    "whatif",
    commands=_commands,
    snapshot_option=SnapshotOption(
        "with the gain of likely changes: records all holds for 10 s, or for -d SECONDS",
        _snapshot_source,
    ),
    monitor_key=_monitor_key,
)
