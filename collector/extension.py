"""Extensions: features that no other module of locktop names, and how they are found.

Those of locktop lie in ``locktop.collector.extensions``, a package each with an ``EXTENSION``. An
installed package of others names its own as an entry point of the group ``locktop.extensions``
(docs/extensions.md). The functions of an extension import what they need when they are called, so
that an extension costs nothing where it is not used. `locktop --help` imports this module, too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from locktop.collector.model import Draft, Snapshot

GROUP = "locktop.extensions"

_HEADING = f"[{GROUP}]".encode()


class SnapshotSection:
    """A part of a snapshot, ``snapshot.sections[NAME]`` with the name of the extension.

    The document has it under the same key, or null.

    Args:
        model: the type of the part in a snapshot: a frozen Struct of msgspec.
        entry: its type in the document: a Struct whose fields have a description.
        meaning: a sentence for docs/snapshot.md and the JSON Schema.
        write: returns the part of a snapshot as the entry, or as a dict with its keys.
        read: returns the entry of a document as the part of a snapshot.
    """

    def __init__(
        self,
        model: type[Any],
        entry: type[Any],
        meaning: str,
        write: Callable[[Any, Snapshot], Any],
        read: Callable[[Any], Any],
    ) -> None:
        self.model = model
        self.entry = entry
        self.meaning = meaning
        self.write = write
        self.read = read


class Extension:
    """One feature. tui/extension.py adds commands and screens.

    Args:
        name: an identifier, unlike the fields of a snapshot and the names of other extensions.
        section: returns the part of a snapshot that the extension brings.
        stage: the last stage of each scan of a live process, which may fill in the section.
        report: yields the lines of its part of the text report, for a number of columns.
        formats: returns formats of ``locktop snapshot``, each an OutputFormat (render/formats.py).
    """

    def __init__(
        self,
        name: str,
        *,
        section: Callable[[], SnapshotSection] | None = None,
        stage: Callable[[Draft], None] | None = None,
        report: Callable[[Snapshot, int], Iterator[str]] | None = None,
        formats: Callable[[], Sequence[Any]] | None = None,
    ) -> None:
        self.name = name
        self.section = section
        self.stage = stage
        self.report = report
        self.formats = formats


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
