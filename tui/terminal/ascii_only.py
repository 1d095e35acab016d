"""Text for a terminal that shows no UTF-8: each character of the screen as one of ASCII.

A terminal of another encoding would show three characters for each line or block, and all columns
would shift.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.cells import cell_len

#: The first of these variables that is set decides, as in setlocale(3).
_VARIABLES = ("LC_ALL", "LC_CTYPE", "LANG")
#: Characters that mean different things in one view stay different.
_GLYPHS = {
    "_": "─", "-": "░╌┄┈╴╶╸╺—", "=": "━═", "|": "│┃║▏▎▍▌▐▕", "+": "┌┐└┘├┤┬┴┼╭╮╰╯╔╗╚╝┏┓┗┛▃",
    ">": "▸▶→►", "<": "◀←", "v": "▾▼↓", "^": "▲↑", "~": "…≈", '"': "“”„", ".": "·•",
    "#": "█▉▊▋", ":": "▒", "%": "▚▓", ",": "▁", ";": "▂", "o": "▄○●", "*": "▅★", "&": "▆▀",
    "@": "▇", "x": "✗", "u": "µμ",
}  # fmt: skip


class _Table(dict[int, str]):
    """For str.translate(): a character without an entry becomes as many ``?`` as it has cells."""

    def __missing__(self, code: int) -> str:
        text = chr(code)
        self[code] = text if code < 128 else "?" * cell_len(text)
        return self[code]


def shows_utf8(environ: Mapping[str, str]) -> bool:
    """Whether the locale of ``environ`` says that the terminal shows UTF-8."""
    locale = next((environ[name] for name in _VARIABLES if environ.get(name)), "")
    return locale.upper().replace("-", "").partition("@")[0].endswith("UTF8")


def first_environment() -> dict[str, str]:
    """The environment at the start of the process.

    Python itself sets LC_CTYPE to UTF-8 later, if the locale is C.
    """
    data = Path("/proc/self/environ").read_bytes()
    pairs = (entry.decode(errors="replace").partition("=") for entry in data.split(b"\0"))
    return {name: value for name, _, value in pairs}


def to_ascii(text: str) -> str:
    """Return ``text`` with the same number of cells, in ASCII."""
    return text.translate(_TABLE)


_TABLE = _Table({ord(glyph): plain for plain, glyphs in _GLYPHS.items() for glyph in glyphs})
