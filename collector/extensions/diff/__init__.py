"""The comparison of two snapshots, recordings or spans of one: what changed, and how surely."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from locktop.collector.extension.parts import Extension, SnapshotSection

if TYPE_CHECKING:
    from locktop.collector.model import Snapshot


def _section() -> SnapshotSection:
    import msgspec

    from locktop.collector.extensions.diff.entry import DifferenceEntry
    from locktop.collector.extensions.diff.model import Difference

    return SnapshotSection(
        model=Difference,
        entry=DifferenceEntry,
        meaning="What changed since another file; with --diff.",
        write=lambda difference, snapshot: msgspec.to_builtins(difference),
        read=lambda entry: msgspec.convert(entry, Difference, from_attributes=True),
    )


def _report(snapshot: Snapshot, width: int) -> Iterator[str]:
    difference = snapshot.sections.get("diff")
    if difference is not None:
        yield from ("", "DIFFERENCES", *(f"  {line}" for line in difference.lines))


EXTENSION = Extension("diff", section=_section, report=_report)
