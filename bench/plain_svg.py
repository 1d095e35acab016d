"""Exports the screen of an app as SVG for the documents."""

from __future__ import annotations

import re
from typing import Any

from textual.app import App


def plain_svg(app: App[Any], title: str) -> str:
    """Return the screen as SVG without downloaded fonts: each reader has one of fixed width."""
    svg = app.export_screenshot(title=title)
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code, monospace", "ui-monospace, 'DejaVu Sans Mono', monospace")
    svg = svg.replace("<!-- Generated with Rich https://www.textualize.io -->", "")
    return "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"
