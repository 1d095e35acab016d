"""A terminal that shows some output, cell by cell."""

from __future__ import annotations

import re
from typing import NamedTuple

import pyte

#: Sequences that pyte would show as text: private ones of xterm and of the keyboard of kitty.
_NOT_OF_PYTE = re.compile(rb"\x1b\[[<>=][0-9;]*[a-zA-Z]|\x1b\[\?[0-9;]*\$[a-z]")
#: The begin of such a sequence at the end of a piece.
_CUT = re.compile(rb"\x1b(\[[<>=?]?[0-9;$]*)?$")


class Appearance(NamedTuple):
    """The text and the style of a cell. A blank without a line has no foreground."""

    text: str
    background: str
    foreground: str = ""
    flags: tuple[bool, ...] = ()


class Emulator:
    """A terminal of some size."""

    def __init__(self, width: int, height: int) -> None:
        self._screen = pyte.Screen(width, height)
        self._stream = pyte.ByteStream(self._screen)
        self._rest = b""  # the begin of a sequence

    def feed(self, data: bytes) -> None:
        """Show output, which may end in the middle of a sequence."""
        data = _NOT_OF_PYTE.sub(b"", self._rest + data)
        cut = _CUT.search(data)
        at = cut.start() if cut is not None else len(data)
        self._rest = data[at:]
        self._stream.feed(data[:at])

    def resize(self, width: int, height: int) -> None:
        """Set the size."""
        self._screen.resize(height, width)

    @property
    def text(self) -> str:
        """The lines of the screen."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def appearances(self) -> list[list[Appearance]]:
        """All cells, row by row."""
        rows, columns = range(self._screen.lines), range(self._screen.columns)
        return [[_appearance(self._screen.buffer[y][x]) for x in columns] for y in rows]


def differences(
    terminal: Emulator, wanted: Emulator
) -> list[tuple[int, int, Appearance, Appearance]]:
    """The cells in which two terminals differ: row, column, the one, the other."""
    return [
        (y, x, one, other)
        for y, (row, other_row) in enumerate(
            zip(terminal.appearances(), wanted.appearances(), strict=True)
        )
        for x, (one, other) in enumerate(zip(row, other_row, strict=True))
        if one != other
    ]


def _appearance(cell: pyte.screens.Char) -> Appearance:
    lines = (cell.underscore, cell.strikethrough, cell.reverse)
    if cell.data == " " and not any(lines):
        return Appearance(" ", cell.bg)
    return Appearance(cell.data, cell.bg, cell.fg, (cell.bold, cell.italics, cell.blink, *lines))
