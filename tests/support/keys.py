"""The bytes that a terminal sends for a key, by the names of Textual."""

from __future__ import annotations

from textual.keys import _character_to_key

_NAMED = {
    "enter": "\r", "escape": "\x1b", "tab": "\t", "shift+tab": "\x1b[Z", "space": " ",
    "backspace": "\x7f", "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D",
    "shift+up": "\x1b[1;2A", "shift+down": "\x1b[1;2B", "shift+right": "\x1b[1;2C",
    "shift+left": "\x1b[1;2D", "home": "\x1b[H", "end": "\x1b[F", "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~", "insert": "\x1b[2~", "delete": "\x1b[3~",
    "f1": "\x1bOP", "f2": "\x1bOQ", "f3": "\x1bOR", "f4": "\x1bOS", "f5": "\x1b[15~",
    "f6": "\x1b[17~", "f7": "\x1b[18~", "f8": "\x1b[19~", "f9": "\x1b[20~", "f10": "\x1b[21~",
}  # fmt: skip
_CHARACTERS = {_character_to_key(chr(code)): chr(code) for code in range(33, 127)}


def bytes_of(key: str) -> str:
    """Return what the terminal sends for ``key``. Raises KeyError for an unknown name."""
    if key in _NAMED:
        return _NAMED[key]
    if key.startswith("ctrl+") and len(key) == len("ctrl+") + 1:
        return chr(ord(key[-1]) & 0x1F)
    return _CHARACTERS[key]
