"""Reports as their readers see them: the parts of the file, and its data."""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import Any

from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.extensions.report import page
from locktop.collector.extensions.report.incident import Incident
from locktop.collector.model import Snapshot
from locktop.collector.recording.chosen_moment import Span


def part_of(text: str, id_: str) -> bytes:
    """Return the unpacked data of one part of a page."""
    match = re.search(rf'<script type="text/plain" id="{id_}">([A-Za-z0-9+/=]*)</script>', text)
    assert match is not None
    return zlib.decompress(base64.b64decode(match[1], validate=True), -zlib.MAX_WBITS)


def data_of(text: str) -> dict[str, Any]:
    """Return the data of a page."""
    data: dict[str, Any] = json.loads(part_of(text, "document"))
    return data


def page_of(snapshot: Snapshot, before: Snapshot | None = None) -> str:
    """Return the page of a snapshot, whose waits are classified first."""
    classified = Classifier().classify(snapshot)
    return page.render(Incident(Span(classified, before))).decode()
