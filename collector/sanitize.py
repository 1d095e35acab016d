"""Text that comes from the process looked at is a stranger's: this makes it harmless."""

from __future__ import annotations

import unicodedata

#: Characters, as many as a path may have. The names of some C++ templates have ten thousand: what
#: is shown of them is shortened further, to the room there is.
LONGEST = 4096

# Control and format characters (escape sequences, bidirectional overrides), surrogates,
# private use, and the separators that end a line.
_HARMFUL = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def clean(text: str | bytes, longest: int = LONGEST) -> str:
    """Return ``text`` on one line, without control codes, at most ``longest`` characters.

    Bytes are taken as UTF-8. Tabs and line ends become blanks, every other harmful character a
    ``?``; what is too long is shortened in the middle, where least is told.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    if len(text) > longest:
        text = _shortened(text, longest)
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_harmless, text))


def _harmless(character: str) -> str:
    if character in "\t\n\r\v\f\x85\u2028\u2029":
        return " "
    return "?" if unicodedata.category(character) in _HARMFUL else character


def _shortened(text: str, longest: int) -> str:
    if longest < 2:
        return text[:longest]
    head = longest // 2
    return f"{text[:head]}…{text[len(text) - (longest - head - 1) :]}"
