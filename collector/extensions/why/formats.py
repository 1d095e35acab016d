"""The formats of ``locktop why``. See render/formats.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locktop.collector.render.formats import WIDTH, OutputFormat, ResultFormats

if TYPE_CHECKING:
    from locktop.collector.extensions.why.model import WhyAnswer


def _text(answer: WhyAnswer, width: int = WIDTH) -> bytes:
    from locktop.collector.extensions.why import text_report
    from locktop.collector.render.files import encoded

    return encoded(text_report.render(answer, width))


def _json(answer: WhyAnswer, width: int = WIDTH) -> bytes:
    from locktop.collector.extensions.why import json_document
    from locktop.collector.render import files

    return files.encoded_json(json_document.document(answer))


def _dot(answer: WhyAnswer, width: int = WIDTH) -> bytes:
    from locktop.collector.extensions.why import graph_document
    from locktop.collector.render.files import encoded

    return encoded(graph_document.render(answer))


WHY_FORMATS = ResultFormats(
    OutputFormat("text", ".txt", _text, is_prose=True),
    OutputFormat("json", ".json", _json),
    OutputFormat("dot", ".dot", _dot),
)
