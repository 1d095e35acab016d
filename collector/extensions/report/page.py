"""The HTML file of a report: one page with its script, its style and its data, and nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from functools import cache
from pathlib import Path

from locktop.collector.extensions.report.document import document
from locktop.collector.extensions.report.incident import Incident

_FOLDER = Path(__file__).parent / "assets"
#: The parts of the script in their order.
_SCRIPTS = (
    "base.js",
    "graph.js",
    "tables.js",
    "cells.js",
    "heat_map.js",
    "flame_graph.js",
    "time_line.js",
    "page.js",
)
#: Texts repeat themselves. The cells are numbers that hardly do: so RLE takes fewer bytes, in a
#: fiftieth of the time.
_TEXT, _NUMBERS = zlib.Z_DEFAULT_STRATEGY, zlib.Z_RLE


def render(incident: Incident) -> bytes:
    """Return the page.

    Raises:
        LocktopError: see document().
    """
    text = json.dumps(document(incident), ensure_ascii=False, separators=(",", ":"))
    cells = incident.heat.cells if incident.heat is not None else b""
    parts = {
        "POLICY": _policy(),
        "STYLE": _style(),
        "SCRIPT": _script(),
        "DOCUMENT": _pack(text.encode("utf-8", "backslashreplace"), _TEXT),
        "CELLS": _pack(cells, _NUMBERS),
    }
    page = (_FOLDER / "page.html").read_text(encoding="utf-8")
    for name, part in parts.items():
        page = page.replace(f"@{name}@", part)
    return page.encode()


def _pack(data: bytes, strategy: int) -> str:
    """Return data as base64 of deflate without a header (RFC 1951)."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, strategy=strategy)
    return base64.b64encode(packer.compress(data) + packer.flush()).decode()


@cache
def _script() -> str:
    parts = [(_FOLDER / name).read_text(encoding="utf-8") for name in _SCRIPTS]
    return '"use strict";\n{\n' + "\n".join(parts) + "}\n"


@cache
def _style() -> str:
    return (_FOLDER / "page.css").read_text(encoding="utf-8")


def _policy() -> str:
    """Return the content security policy: one script, one style, nothing from anywhere."""
    return (
        f"default-src 'none'; script-src {_hash(_script())}; style-src {_hash(_style())};"
        " base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
