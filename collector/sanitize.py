"""Makes text from other processes harmless for the terminal."""

from __future__ import annotations

import unicodedata

#: The longest text, in characters: the limit of a path. Names of some C++ templates have 10,000
#: characters; the views shorten such names further, to the room on the screen.
LONGEST = 4096

# Control and format characters (escape sequences, bidirectional overrides), surrogates,
# private use, and the separators that end a line.
_HARMFUL = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def clean(text: str | bytes, longest: int = LONGEST) -> str:
    """Return ``text`` on one line, without control codes, at most ``longest`` characters.

    Bytes are decoded as UTF-8. Tabs and line ends become blanks; every other harmful character
    becomes ``?``. A text that is too long loses its middle, which says least.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    if len(text) > longest:
        text = _shorten(text, longest)
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_escape, text))


def _escape(character: str) -> str:
    if character in "\t\n\r\v\f\x85\u2028\u2029":
        return " "
    return "?" if unicodedata.category(character) in _HARMFUL else character


def _shorten(text: str, longest: int) -> str:
    if longest < 2:
        return text[:longest]
    head = longest // 2
    return f"{text[:head]}…{text[len(text) - (longest - head - 1) :]}"
