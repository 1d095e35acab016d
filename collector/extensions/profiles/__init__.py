"""Profiles that a program makes of its own code by locktop.h (docs/profile.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locktop.collector.extension.parts import Extension, SnapshotSection

if TYPE_CHECKING:
    from locktop.collector.sources.preload.session_part import SessionContext, SessionPart


def _section() -> SnapshotSection:
    import msgspec

    from locktop.collector.extensions.profiles.entry import SelfProfileEntry
    from locktop.collector.extensions.profiles.model import SelfProfile

    model = tuple[SelfProfile, ...]
    return SnapshotSection(
        model=model,
        entry=list[SelfProfileEntry],
        meaning="Profiles that the program makes of its own code.",
        write=lambda profiles, snapshot: profiles,
        read=lambda entries: msgspec.convert(entries, model, from_attributes=True),
        default=[],
    )


def _session_part(context: SessionContext) -> SessionPart:
    from locktop.collector.extensions.profiles.session_part import ProfileReader

    return ProfileReader(context)


EXTENSION = Extension(
    "profiles", section=_section, session_part=_session_part, is_recorded_as_field=True
)
