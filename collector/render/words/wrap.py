"""Lines of plain text that fit a width."""

from __future__ import annotations

import textwrap

from locktop.collector.sanitize import clean

_LONGEST_LINE = 1000


def wrapped(line: str, width: int) -> list[str]:
    """Return the line, cleaned, in parts of at most ``width`` characters.

    Parts after the first are indented further. The report loses no text.
    """
    line = clean(line, _LONGEST_LINE).rstrip()
    if len(line) <= width:
        return [line]
    further = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.wrap(line, width, subsequent_indent=further, break_on_hyphens=False)
