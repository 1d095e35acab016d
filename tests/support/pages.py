"""Whole texts that tests expect, each in a file of its own under ``tests/unit/render/pages``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PAGES = Path(__file__).parents[1] / "unit/render/pages"


def page(name: str) -> str:
    """Return the text with this name."""
    return (_PAGES / f"{name}.txt").read_text()


def flat(document: dict[str, Any]) -> str:
    """Return a document of JSON as lines: one for each key, and for each object of a list."""
    return "".join(f"{line}\n" for line in _lines(document))


def _lines(document: dict[str, Any]) -> Iterator[str]:
    for key, value in document.items():
        if isinstance(value, dict):
            yield f"{key}:"
            yield from _lines(value)
        elif isinstance(value, list) and value:
            yield f"{key}:"
            yield from (f"  {json.dumps(entry)}" for entry in value)
        else:
            yield f"{key}: {json.dumps(value)}"
