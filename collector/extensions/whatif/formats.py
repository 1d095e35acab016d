"""The formats of the predictions of `locktop whatif`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locktop.collector.render.formats import WIDTH, OutputFormat, ResultFormats

if TYPE_CHECKING:
    from locktop.collector.extensions.whatif.model import WhatIf
    from locktop.collector.model import Snapshot


def _whatif_text(prediction: WhatIf, snapshot: Snapshot, width: int = WIDTH) -> bytes:
    from locktop.collector.extensions.whatif import text_report
    from locktop.collector.render.files import encoded

    return encoded(text_report.render(prediction, snapshot, width))


def _whatif_json(prediction: WhatIf, snapshot: Snapshot, width: int = WIDTH) -> bytes:
    from locktop.collector.extensions.whatif import json_document
    from locktop.collector.render import files

    return files.encoded_json(json_document.document(prediction, snapshot))


WHATIF_FORMATS = ResultFormats(
    OutputFormat("text", ".txt", _whatif_text, is_prose=True),
    OutputFormat("json", ".json", _whatif_json),
)
