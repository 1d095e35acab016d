"""Finds the extensions: features that no other module of locktop names.

Those of locktop lie in ``locktop.collector.extensions``, a package each with an ``EXTENSION``. An
installed package of others names its own as an entry point of the group ``locktop.extensions``
(docs/extensions.md). `locktop --help` imports this module, too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

from locktop.collector.extension.parts import Extension, SnapshotSection

GROUP = "locktop.extensions"

_HEADING = f"[{GROUP}]".encode()


class LoadedExtensions:
    """The extensions of installed packages, and a line for each that is left out."""

    def __init__(self, extensions: tuple[Extension, ...], faults: tuple[str, ...]) -> None:
        self.extensions = extensions
        self.faults = faults


@cache
def extensions() -> tuple[Extension, ...]:
    """The extensions of the collector, and those of installed packages."""
    return (*own_extensions("locktop.collector.extensions"), *installed().extensions)


def own_extensions(package: str) -> Iterator[Extension]:
    """Yield ``EXTENSION`` of each package in a package of locktop, in the order of names."""
    for folder in import_module(package).__path__:
        for name in sorted(os.listdir(folder)):
            if Path(folder, name, "__init__.py").is_file():
                yield import_module(f"{package}.{name}").EXTENSION


@cache
def sections() -> Mapping[str, SnapshotSection]:
    """The sections of a snapshot by name."""
    return {
        extension.name: extension.section()
        for extension in extensions()
        if extension.section is not None
    }


@cache
def installed() -> LoadedExtensions:
    """The extensions of installed packages. One that cannot be loaded is left out."""
    if not any(map(_names_extensions, _metadata_folders())):
        return LoadedExtensions((), ())
    from importlib.metadata import entry_points

    loaded: dict[str, Extension] = {}
    faults: list[str] = []
    for point in entry_points(group=GROUP):
        try:
            extension = point.load()
        except Exception as error:
            faults.append(f"extension {point.name} left out: {type(error).__name__}: {error}")
            continue
        if reason := _fault(extension, loaded):
            faults.append(f"extension {point.name} left out: {reason}")
        else:
            loaded[extension.name] = extension
    return LoadedExtensions(tuple(loaded.values()), tuple(faults))


def _fault(extension: object, loaded: Mapping[str, Extension]) -> str:
    """Return why an extension cannot be used; "" if it can."""
    from locktop.collector.model import Draft

    if not isinstance(extension, Extension):
        return f"{GROUP} must name an Extension, not {type(extension).__name__}"
    own = {ours.name for ours in own_extensions("locktop.collector.extensions")}
    if extension.name in loaded or extension.name in own:
        return f"there is another extension {extension.name!r}"
    if not extension.name.isidentifier() or extension.name in Draft.__struct_fields__:
        return f"{extension.name!r} cannot be the name of an extension"
    return ""


def _metadata_folders() -> Iterator[Path]:
    # importlib.metadata takes as long to import as all that `locktop --help` needs.
    for path in sys.path:
        try:
            names = os.listdir(path or ".")
        except OSError:
            continue
        yield from (Path(path, name) for name in names if name.endswith(".dist-info"))


def _names_extensions(metadata: Path) -> bool:
    try:
        return _HEADING in (metadata / "entry_points.txt").read_bytes()
    except OSError:
        return False
