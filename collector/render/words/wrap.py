"""Lines of plain text that fit a width."""

from __future__ import annotations

import re
import textwrap

from locktop.collector.sanitize import clean

_LONGEST_LINE = 1000
#: A duration, such as "33 min 44 s". No part of a line ends within one.
_DURATION = re.compile(r"\d[\d.]* (?:d|h|min|s|ms|us|ns)\b(?: \d+ (?:h|min|s)\b)?")
_NO_BREAK = "\0"


def wrapped(line: str, width: int) -> list[str]:
    """Return the line, cleaned, in parts of at most ``width`` characters.

    Parts after the first are indented further. The report loses no text.
    """
    line = clean(line, _LONGEST_LINE).rstrip()
    if len(line) <= width:
        return [line]
    further = " " * (len(line) - len(line.lstrip()) + 4)
    line = _DURATION.sub(lambda match: match[0].replace(" ", _NO_BREAK), line)
    parts = textwrap.wrap(line, width, subsequent_indent=further, break_on_hyphens=False)
    return [part.replace(_NO_BREAK, " ") for part in parts]
