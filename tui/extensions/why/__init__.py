"""Why a process hangs, across processes: the command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from locktop.tui.extension import ScreenExtension

if TYPE_CHECKING:
    from locktop.tui.extension_parts import Command, StepElsewhere


def _commands() -> Sequence[Command]:
    from locktop.tui.extensions.why import command

    return (command,)


def _steps_elsewhere(pid: int, tids: Sequence[int]) -> Mapping[int, Sequence[StepElsewhere]]:
    from locktop.tui.extensions.why import elsewhere

    return elsewhere.read(pid, tids)


EXTENSION = ScreenExtension("why", commands=_commands, steps_elsewhere=_steps_elsewhere)
