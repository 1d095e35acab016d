"""The formats of `locktop callers --inside` and of its screen. See render/formats.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locktop.collector.render.formats import WIDTH, OutputFormat, ResultFormats

if TYPE_CHECKING:
    from locktop.collector.model import Lock, Snapshot


def _text(snapshot: Snapshot, lock: Lock, width: int = WIDTH) -> bytes:
    from locktop.collector.extensions.inside import text_report
    from locktop.collector.render.files import encoded

    return encoded(text_report.render(snapshot, lock, width))


def _json(snapshot: Snapshot, lock: Lock, width: int = WIDTH) -> bytes:
    from locktop.collector.extensions.inside import report_json
    from locktop.collector.render import files

    return files.encoded_json(report_json.document(snapshot, lock))


INSIDE_FORMATS = ResultFormats(
    OutputFormat("text", ".txt", _text, is_prose=True),
    OutputFormat("json", ".json", _json),
)
