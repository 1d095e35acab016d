"""Samples of what runs inside contended locks (docs/inside.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locktop.collector.extension.parts import Extension

if TYPE_CHECKING:
    from locktop.collector.sources.preload.session_part import SessionContext, SessionPart


def _session_part(context: SessionContext) -> SessionPart:
    from locktop.collector.extensions.inside.session_part import InsideSampler

    return InsideSampler(context)


EXTENSION = Extension("inside", session_part=_session_part, about="what runs inside locks")
