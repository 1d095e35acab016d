"""The parts that an extension may bring to the collector, as types.

The functions of an extension import what they need when they are called, so that it costs nothing
where it is not used. `locktop --help` imports this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from locktop.collector.model import Draft, Snapshot


class LockKey(NamedTuple):
    """A key of a section in the entries of locks, with the name of the extension.

    The part of a snapshot has it in ``locks``, by lock id.
    """

    model: type[Any]  # of the values of ``locks``
    entry: type[Any]  # in the document
    meaning: str  # a sentence, as that of the section


class SnapshotSection:
    """A part of a snapshot, ``snapshot.sections[NAME]`` with the name of the extension.

    The document has it under the same key, or null.

    Args:
        model: the type of the part in a snapshot: a frozen Struct of msgspec, or a tuple of such.
        entry: its type in the document: a Struct whose fields have a description, or a list.
        meaning: a sentence for docs/snapshot.md and the JSON Schema.
        write: returns the part of a snapshot as the entry, or as a dict with its keys.
        read: returns the entry of a document as the part of a snapshot.
        default: what the document has without the part: None for null, or an empty list.
        lock_key: the key that entries of locks have, too.
    """

    def __init__(
        self,
        model: type[Any],
        entry: type[Any],
        meaning: str,
        write: Callable[[Any, Snapshot], Any],
        read: Callable[[Any], Any],
        default: list[Any] | None = None,
        lock_key: LockKey | None = None,
    ) -> None:
        self.model = model
        self.entry = entry
        self.meaning = meaning
        self.write = write
        self.read = read
        self.default = default
        self.lock_key = lock_key


class Extension:
    """One feature. tui/extension.py adds commands and screens.

    Args:
        name: an identifier, unlike the fields of a snapshot and the names of other extensions.
        section: returns the part of a snapshot that the extension brings.
        stage: the last stage of each scan of a live process, which may fill in the section.
        session_part: returns the part of a session that reads the shared memory of a program, a
            SessionPart for a SessionContext (sources/preload/session_part.py).
        about: what the session part shows, for messages.
        entry_stacks: of a section that costs: scans have it on request alone (Source.want_section).
            The function returns the ids of stacks to which the entries of a part refer, one each.
        is_recorded_as_field: a recording has the section beside the fields of the snapshot, as it
            had before there were extensions.
        report: yields the lines of its part of the text report, for a number of columns.
        formats: returns formats of ``locktop snapshot``, each an OutputFormat (render/formats.py).
        finding_formats: returns formats of ``locktop check``.
    """

    def __init__(
        self,
        name: str,
        *,
        section: Callable[[], SnapshotSection] | None = None,
        stage: Callable[[Draft], None] | None = None,
        session_part: Callable[[Any], Any] | None = None,
        about: str = "",
        entry_stacks: Callable[[Any], Sequence[int]] | None = None,
        is_recorded_as_field: bool = False,
        report: Callable[[Snapshot, int], Iterator[str]] | None = None,
        formats: Callable[[], Sequence[Any]] | None = None,
        finding_formats: Callable[[], Sequence[Any]] | None = None,
    ) -> None:
        self.name = name
        self.section = section
        self.stage = stage
        self.session_part = session_part
        self.about = about
        self.entry_stacks = entry_stacks
        self.is_recorded_as_field = is_recorded_as_field
        self.report = report
        self.formats = formats
        self.finding_formats = finding_formats
