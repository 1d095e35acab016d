"""The formats of `locktop diff`. See render/formats.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locktop.collector.render.formats import OutputFormat, ResultFormats

if TYPE_CHECKING:
    from locktop.collector.extensions.diff.model import SideComparison


def _text(comparison: SideComparison) -> bytes:
    from locktop.collector.extensions.diff import text_report
    from locktop.collector.render.files import encoded

    return encoded(text_report.render(comparison))


def _json(comparison: SideComparison) -> bytes:
    from locktop.collector.extensions.diff import json_document
    from locktop.collector.render import files

    return files.encoded_json(json_document.document(comparison))


DIFF_FORMATS = ResultFormats(
    OutputFormat("text", ".txt", _text, is_prose=True),
    OutputFormat("json", ".json", _json),
)
