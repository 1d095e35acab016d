"""An incident as one HTML file, for a ticket or for people without locktop (docs/report.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from locktop.collector.extension.parts import Extension

if TYPE_CHECKING:
    from locktop.collector.model import Snapshot
    from locktop.collector.render.formats import OutputFormat


def _render(
    snapshot: Snapshot, before: Snapshot | None = None, width: int = 0, idle: bool = False
) -> bytes:
    from locktop.collector.extensions.report import page
    from locktop.collector.extensions.report.incident import Incident
    from locktop.collector.recording.chosen_moment import Span

    return page.render(Incident(Span(snapshot, before)))


def _formats() -> Sequence[OutputFormat[Snapshot, Snapshot | None, int, bool]]:
    from locktop.collector.render.formats import OutputFormat

    return [OutputFormat("html", ".html", _render)]


EXTENSION = Extension("report", formats=_formats)
