"""Options of extensions that add a section to a snapshot: ``--whatif``, ``--calls``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.tui.extension import SnapshotOption, screen_extensions

if TYPE_CHECKING:
    from locktop.collector.sources.attach import Source
    from locktop.tui.extension_parts import SnapshotSource


def _options() -> dict[str, SnapshotOption]:
    """Return the options by the names of their extensions."""
    return {
        extension.name: extension.snapshot_option
        for extension in screen_extensions()
        if extension.snapshot_option is not None
    }


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    for name, option in _options().items():
        if option.metavar:
            parser.add_argument(f"--{name}", metavar=option.metavar, help=option.help)
        else:
            parser.add_argument(f"--{name}", action="store_true", help=option.help)
    for option in _options().values():
        for add_further in option.further.values():
            add_further(parser)


def check(arguments: argparse.Namespace) -> None:
    """Raise LocktopError if the given options do not go together, or with other options."""
    for name, option in _options().items():
        for further in option.further:
            is_usable = getattr(arguments, name) and arguments.pid is not None
            if getattr(arguments, further) is not None and not is_usable:
                raise LocktopError(f"--{further} needs --{name} and -p PID")
    chosen = chosen_sources(arguments)
    for source in chosen:
        source.check(arguments)
    if len(chosen) > 1:
        raise LocktopError("several measurements at once: make a snapshot for each")


def chosen_sources(arguments: argparse.Namespace) -> list[SnapshotSource]:
    """Return the modules that make the sections of the given options."""
    return [
        option.load()
        for name, option in _options().items()
        if option.load is not None and getattr(arguments, name)
    ]


def want_sections(source: Source, arguments: argparse.Namespace) -> None:
    """Let the scans of a source have the sections of the options, if they are on request alone."""
    for name, option in _options().items():
        if option.load is None:
            source.want_section(name, getattr(arguments, name))
