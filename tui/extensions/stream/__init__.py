"""The commands that send snapshots to another machine, and show them there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from locktop.tui.extension import ScreenExtension

if TYPE_CHECKING:
    from locktop.tui.extension_parts import Command


def _commands() -> Sequence[Command]:
    from locktop.tui.extensions.stream import listen_command, stream_command

    return (stream_command, listen_command)


EXTENSION = ScreenExtension("stream", commands=_commands)
