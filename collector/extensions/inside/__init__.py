"""Samples of what runs inside contended locks (docs/inside.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from locktop.collector.extension.parts import Extension, LockKey, SnapshotSection

if TYPE_CHECKING:
    from locktop.collector.model import Snapshot
    from locktop.collector.sources.preload.session_part import SessionContext, SessionPart


def _section() -> SnapshotSection:
    import msgspec

    from locktop.collector.extensions.inside.entry import InsideEntry, LockInsideEntry
    from locktop.collector.extensions.inside.model import InsideProfile, LockInside

    return SnapshotSection(
        model=InsideProfile,
        entry=InsideEntry,
        meaning="The profile of what runs inside locks; with --inside.",
        write=lambda profile, snapshot: profile,
        read=lambda entry: msgspec.convert(entry, InsideProfile, from_attributes=True),
        lock_key=LockKey(
            LockInside, LockInsideEntry, "What ran while threads held the lock; with --inside."
        ),
    )


def _session_part(context: SessionContext) -> SessionPart:
    from locktop.collector.extensions.inside.session_part import InsideSampler

    return InsideSampler(context)


def _report(snapshot: Snapshot, width: int) -> Iterator[str]:
    if "inside" in snapshot.sections:
        from locktop.collector.extensions.inside import text_report

        yield from text_report.summary(snapshot, width)


EXTENSION = Extension(
    "inside",
    section=_section,
    session_part=_session_part,
    about="what runs inside locks",
    is_recorded_as_field=True,
    report=_report,
)
