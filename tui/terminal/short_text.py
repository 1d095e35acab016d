"""The text of a run in fewer bytes: repetitions, and lines of the character set for drawing."""

from __future__ import annotations

import re

from locktop.tui.terminal.description import Abilities

#: The letters are letters again, after a line of the drawing set.
ASCII_SET = "\x1b(B"
_DRAWING_SET = "\x1b(0"
#: The letter of the drawing set that shows ─.
_LINE = "q"
#: Fewer equal characters of ASCII are no shorter.
_MIN_EQUAL = 6
_EQUAL_ASCII = re.compile(r"([ -~])\1{5,}")
#: Equal characters that are shorter as one with a repetition: of three bytes each, or of one.
_EQUAL = re.compile(r"([^\x00-\x7f])\1{2,}|([ -~])\2{5,}")
#: A line has three bytes for each cell, against one for each and six.
_LINES = re.compile("─{4,}")


def shorten(text: str, abilities: Abilities) -> str:
    """Return output that shows ``text``, each character of which has one cell."""
    if len(text) < _MIN_EQUAL and text.isascii():
        return text
    if abilities.repeats:
        return _EQUAL.sub(_repetition, text)
    if abilities.repeats_ascii:
        text = _EQUAL_ASCII.sub(_repetition, text)
    if abilities.draws_lines:
        text = _LINES.sub(lambda line: _draw_line(len(line.group()), abilities), text)
    return text


def _draw_line(cells: int, abilities: Abilities) -> str:
    return f"{_DRAWING_SET}{shorten(_LINE * cells, abilities)}{ASCII_SET}"


def _repetition(equal: re.Match[str]) -> str:
    text = equal.group()
    return f"{text[0]}\x1b[{len(text) - 1}b"
