"""Changes of source files."""

from __future__ import annotations

import re
from pathlib import Path


def replace_in(file: Path, pattern: str, text: str) -> None:
    """Replace each match in a file. Raise SystemExit if there is none."""
    after, count = re.subn(pattern, text, file.read_text())
    if not count:
        raise SystemExit(f"{file} has changed: no {pattern}")
    file.write_text(after)
