"""The function calls of a program built with -finstrument-functions (docs/calls.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locktop.collector.extension.parts import Extension, SnapshotSection

if TYPE_CHECKING:
    from locktop.collector.extensions.calls.model import CallTree
    from locktop.collector.sources.preload.session_part import SessionContext, SessionPart


def _section() -> SnapshotSection:
    import msgspec

    from locktop.collector.extensions.calls.entry import CallTreeEntry
    from locktop.collector.extensions.calls.model import CallTree

    model = tuple[CallTree, ...]
    return SnapshotSection(
        model=model,
        entry=list[CallTreeEntry],
        meaning="Function calls by thread, with --calls.",
        write=lambda trees, snapshot: trees,
        read=lambda entries: msgspec.convert(entries, model, from_attributes=True),
        default=[],
    )


def _session_part(context: SessionContext) -> SessionPart:
    from locktop.collector.extensions.calls.session_part import CallReader

    return CallReader(context)


def _entry_stacks(trees: tuple[CallTree, ...]) -> list[int]:
    return [node.function for tree in trees for node in tree.nodes]


EXTENSION = Extension(
    "calls",
    section=_section,
    session_part=_session_part,
    entry_stacks=_entry_stacks,
    is_recorded_as_field=True,
)
