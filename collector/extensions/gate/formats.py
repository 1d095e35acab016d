"""The formats of the result of `locktop gate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locktop.collector.render.formats import WIDTH, OutputFormat, ResultFormats

if TYPE_CHECKING:
    from locktop.collector.extensions.gate.model import GateResult


def _gate_text(result: GateResult, width: int = WIDTH) -> bytes:
    from locktop.collector.extensions.gate import text_report
    from locktop.collector.render.files import encoded

    return encoded(text_report.render(result, width))


def _gate_json(result: GateResult, width: int = WIDTH) -> bytes:
    from locktop.collector.extensions.gate import json_document

    return json_document.encode(result)


def _gate_junit(result: GateResult, width: int = WIDTH) -> bytes:
    from locktop.collector.extensions.gate import junit

    return junit.render(result)


def _gate_markdown(result: GateResult, width: int = WIDTH) -> bytes:
    from locktop.collector.extensions.gate import markdown
    from locktop.collector.render.files import encoded

    return encoded(markdown.render(result))


GATE_FORMATS = ResultFormats(
    OutputFormat("text", ".txt", _gate_text, about="text (the default)", is_prose=True),
    OutputFormat("json", ".json", _gate_json, about="json"),
    OutputFormat("junit", ".xml", _gate_junit, about="junit: XML for a CI"),
    OutputFormat("markdown", ".md", _gate_markdown, about="markdown: for a pull request"),
)
