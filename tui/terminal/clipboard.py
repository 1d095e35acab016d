"""The sequence OSC 52, which puts a text into the clipboard of the terminal."""

from __future__ import annotations

import base64
from collections.abc import Mapping

#: Many terminals drop a longer text without a word.
MAX_BYTES = 74 * 1024
#: The program screen passes on pieces of at most 768 bytes. Each piece has two bytes at either end.
_SCREEN_PIECE = 760


def set_clipboard(data: bytes, environ: Mapping[str, str]) -> str:
    """Return the sequence that puts ``data`` into the clipboard.

    A terminal and tmux take the sequence as it is. The program screen passes on strings of its own
    kind (DCS) alone, so the sequence goes through in such pieces.
    """
    sequence = f"\x1b]52;c;{base64.b64encode(data).decode()}\a"
    if not environ.get("STY") or environ.get("TMUX"):
        return sequence
    pieces = range(0, len(sequence), _SCREEN_PIECE)
    return "".join(f"\x1bP{sequence[index : index + _SCREEN_PIECE]}\x1b\\" for index in pieces)


def note(environ: Mapping[str, str]) -> str:
    """Return what the user must have set for the sequence to have an effect, "" for nothing."""
    return "tmux takes it if its option set-clipboard is on." if environ.get("TMUX") else ""
