"""The formats of `locktop stacks`. See render/formats.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locktop.collector.render.formats import WIDTH, OutputFormat, ResultFormats

if TYPE_CHECKING:
    from locktop.collector.extensions.stacks.model import AllStacks


def _text(stacks: AllStacks, width: int = WIDTH) -> bytes:
    from locktop.collector.extensions.stacks import text_report
    from locktop.collector.render.files import encoded

    return encoded(text_report.render(stacks, width))


def _json(stacks: AllStacks, width: int = WIDTH) -> bytes:
    from locktop.collector.extensions.stacks import json_document
    from locktop.collector.render import files

    return files.encoded_json(json_document.document(stacks))


STACKS_FORMATS = ResultFormats(
    OutputFormat("text", ".txt", _text, is_prose=True),
    OutputFormat("json", ".json", _json),
)
