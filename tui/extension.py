"""Extensions that bring commands and screens, beside what extension/parts.py lets them bring.

Those of locktop lie in ``locktop.tui.extensions``, a package each with an ``EXTENSION``. Installed
packages name theirs as entry points of the group ``locktop.extensions`` (docs/extensions.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from locktop.collector.extension.discovery import installed, own_extensions
from locktop.collector.extension.parts import Extension

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from locktop.collector.model import Lock
    from locktop.collector.render.words.snapshot_index import SnapshotIndex
    from locktop.tui.action_types import Action
    from locktop.tui.extension_parts import (
        Command,
        CommandMode,
        MonitorKey,
        SnapshotSource,
        StepElsewhere,
    )


class SnapshotOption:
    """An option ``--NAME`` of ``locktop snapshot`` and ``locktop report`` that adds the section of
    an extension.

    Args:
        help: what it adds.
        load: returns the module that does so. None: the scans do, for the section is on request
            alone (Source.want_section).
        metavar: the name of the value that the option takes; "": it takes none.
        further: options that need this one and a process: what declares each, by its name.
    """

    def __init__(
        self,
        help: str,
        load: Callable[[], SnapshotSource] | None = None,
        further: Mapping[str, Callable[[ArgumentParser], None]] = {},
        metavar: str = "",
    ) -> None:
        self.help = help
        self.metavar = metavar
        self.load = load
        self.further = further


class ViewLabel(NamedTuple):
    """The place of a view in the first line, beside the views of the monitor."""

    digit: str  # the key of the action ``view_NAME``, which the extension brings
    title: str  # on a wide terminal
    short: str  # on 80 columns


class ControlSwitch:
    """An option ``--NAME on|off`` of ``locktop ctl``.

    Args:
        help: what it switches on and off in a process.
        about: a sentence for the description of the command.
        switch: does so in the process with a pid; returns a line for the user. May raise
            LocktopError.
    """

    def __init__(self, help: str, about: str, switch: Callable[[int, bool], str]) -> None:
        self.help = help
        self.about = about
        self.switch = switch


class ScreenExtension(Extension):
    """One feature with commands and screens.

    Args:
        name: see Extension, as for ``parts``.
        commands: returns the commands.
        snapshot_option: the option of ``locktop snapshot`` with the name of the extension.
        control_switch: the option of ``locktop ctl`` with the name of the extension.
        monitor_key: returns the key of the monitor that opens a view.
        view_label: the place of that view among those with a digit.
        lock_details: yields lines for the details of a lock, each a Line (views/styled_line.py).
        command_modes: returns modes of commands of others, by the names of the commands.
        steps_elsewhere: returns for threads of a process, by tid, the steps of their waits that
            lead to other processes (StepElsewhere). The tree of blockers shows them.
        parts: other arguments of Extension.
    """

    def __init__(
        self,
        name: str,
        *,
        commands: Callable[[], Sequence[Command]] | None = None,
        snapshot_option: SnapshotOption | None = None,
        control_switch: ControlSwitch | None = None,
        monitor_key: Callable[[], MonitorKey] | None = None,
        view_label: ViewLabel | None = None,
        lock_details: Callable[[SnapshotIndex, Lock], Iterator[Any]] | None = None,
        command_modes: Callable[[], Mapping[str, CommandMode]] | None = None,
        steps_elsewhere: Callable[[int, Sequence[int]], Mapping[int, Sequence[StepElsewhere]]]
        | None = None,
        **parts: Any,
    ) -> None:
        super().__init__(name, **parts)
        self.commands = commands
        self.snapshot_option = snapshot_option
        self.control_switch = control_switch
        self.monitor_key = monitor_key
        self.view_label = view_label
        self.lock_details = lock_details
        self.command_modes = command_modes
        self.steps_elsewhere = steps_elsewhere


@cache
def screen_extensions() -> tuple[ScreenExtension, ...]:
    """The extensions of the screen, first those whose views have a digit; then installed ones."""
    everything = (*own_extensions("locktop.tui.extensions"), *installed().extensions)
    screens = [extension for extension in everything if isinstance(extension, ScreenExtension)]
    return tuple(sorted(screens, key=lambda extension: extension.view_label is None))


@cache
def command_modes(command: str) -> list[CommandMode]:
    """The modes that extensions bring to a command."""
    by_command = [
        extension.command_modes()
        for extension in screen_extensions()
        if extension.command_modes is not None
    ]
    return [modes[command] for modes in by_command if command in modes]


def steps_elsewhere(pid: int, tids: Sequence[int]) -> Mapping[int, Sequence[StepElsewhere]]:
    """The steps that extensions know of the waits of threads, by tid. See ScreenExtension."""
    steps: dict[int, Sequence[StepElsewhere]] = {}
    for extension in screen_extensions():
        if extension.steps_elsewhere is not None:
            steps |= extension.steps_elsewhere(pid, tids)
    return steps


@cache
def monitor_keys() -> Mapping[str, MonitorKey]:
    """The keys of the monitor that open views of extensions, by the names of their actions."""
    return {
        extension.name: extension.monitor_key()
        for extension in screen_extensions()
        if extension.monitor_key is not None
    }


def actions_of_extensions() -> Mapping[str, Action]:
    """The actions of all extensions by name."""
    keys = monitor_keys()
    own = {name: action for key in keys.values() for name, action in key.actions.items()}
    return {**own, **{name: key.action for name, key in keys.items()}}


def keys_of_extensions() -> Mapping[str, tuple[str, ...]]:
    """The keys of these actions, as in keymap.toml."""
    keys = monitor_keys()
    own = {name: texts for key in keys.values() for name, texts in key.keys_of_actions.items()}
    return {**own, **{name: key.keys for name, key in keys.items()}}
