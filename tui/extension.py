"""Extensions that bring commands and screens, beside what extension/parts.py lets them bring.

Those of locktop lie in ``locktop.tui.extensions``, a package each with an ``EXTENSION``. Installed
packages name theirs as entry points of the group ``locktop.extensions`` (docs/extensions.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from locktop.collector.extension.discovery import installed, own_extensions
from locktop.collector.extension.parts import Extension

if TYPE_CHECKING:
    from locktop.tui.action_types import Action
    from locktop.tui.extension_parts import Command, MonitorKey, SnapshotSource


class SnapshotOption:
    """An option ``--NAME`` of ``locktop snapshot`` that adds the section of an extension.

    Args:
        help: what it adds.
        load: returns the module that does so. None: the scans do, for the section is on request
            alone (Source.want_section).
    """

    def __init__(self, help: str, load: Callable[[], SnapshotSource] | None = None) -> None:
        self.help = help
        self.load = load


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
        **parts: Any,
    ) -> None:
        super().__init__(name, **parts)
        self.commands = commands
        self.snapshot_option = snapshot_option
        self.control_switch = control_switch
        self.monitor_key = monitor_key


@cache
def screen_extensions() -> tuple[ScreenExtension, ...]:
    """The extensions of the screen, and those of installed packages."""
    everything = (*own_extensions("locktop.tui.extensions"), *installed().extensions)
    return tuple(extension for extension in everything if isinstance(extension, ScreenExtension))


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
