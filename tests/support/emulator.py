"""A terminal that shows some output, cell by cell."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any, NamedTuple

import pyte
import pyte.screens

#: Sequences that pyte would show as text: private ones of xterm and of the keyboard of kitty.
_NOT_OF_PYTE = re.compile(rb"\x1b\[[<>=][0-9;]*[a-zA-Z]|\x1b\[\?[0-9;]*(?:\$[a-z]|n)")
#: The begin of such a sequence at the end of a piece.
_CUT = re.compile(rb"\x1b(\[[<>=?]?[0-9;$]*|\()?$")
#: The begin and the end of text in the character set for drawing, which pyte ignores beside UTF-8.
_SET = re.compile(rb"\x1b\(([0B])")
_LINE = {ord("q"): "─"}


class Kind(Enum):
    """Terminals of different abilities."""

    XTERM = "repeats each character"
    TMUX_3_3 = "repeats ASCII alone, and draws lines"
    SCREEN = "repeats nothing, and draws lines"
    MOSH = "repeats nothing, and draws no lines"


class Appearance(NamedTuple):
    """The text and the style of a cell. A blank without a line has no foreground."""

    text: str
    background: str
    foreground: str = ""
    flags: tuple[bool, ...] = ()


class _Stream(pyte.ByteStream):
    """Knows the repetition of a character, too."""

    csi = pyte.ByteStream.csi | {"b": "repeat_character"}
    events = pyte.ByteStream.events | {"repeat_character"}


class _Screen(pyte.Screen):
    """A screen of pyte with the abilities of xterm that the app uses."""

    def __init__(self, width: int, height: int, kind: Kind) -> None:
        self.answers = ""
        self.draws = False  # whether letters are lines
        self._kind = kind
        self._last = ""
        super().__init__(width, height)

    def draw(self, data: str) -> None:
        super().draw(data.translate(_LINE) if self.draws else data)
        self._last = data[-1:]

    def repeat_character(self, count: int = 1) -> None:
        """REP: show the last character again."""
        is_ascii = self._kind == Kind.TMUX_3_3 and self._last.isascii()
        if self._kind == Kind.XTERM or is_ascii:
            self.draw(self._last * (count or 1))

    def insert_lines(self, count: int | None = None) -> None:
        """IL. The new lines have the background of the present style, unlike those of pyte."""
        self._move_lines(count or 1)

    def delete_lines(self, count: int | None = None) -> None:
        """DL. See insert_lines()."""
        self._move_lines(-(count or 1))

    def _move_lines(self, by: int) -> None:
        top, bottom = self.margins or (0, self.lines - 1)
        if not top <= self.cursor.y <= bottom:
            return
        numbers = range(self.cursor.y, bottom + 1)
        lines = [[self.buffer[y][x] for x in range(self.columns)] for y in numbers]
        blank = self.default_char._replace(bg=self.cursor.attrs.bg)
        for number, y in enumerate(numbers):
            is_new = not 0 <= number - by < len(lines)
            for x in range(self.columns):
                self.buffer[y][x] = blank if is_new else lines[number - by][x]
        self.carriage_return()

    def write_process_input(self, data: str) -> None:
        self.answers += data


class Emulator:
    """A terminal of some size."""

    def __init__(self, width: int, height: int, kind: Kind = Kind.XTERM) -> None:
        self._screen = _Screen(width, height, kind)
        self._draws_lines = kind in (Kind.TMUX_3_3, Kind.SCREEN)
        self._stream: Any = _Stream(self._screen)
        self._rest = b""  # the begin of a sequence

    def feed(self, data: bytes) -> None:
        """Show output, which may end in the middle of a sequence."""
        data = _NOT_OF_PYTE.sub(b"", self._rest + data)
        cut = _CUT.search(data)
        end = cut.start() if cut is not None else len(data)
        self._rest = data[end:]
        for number, part in enumerate(_SET.split(data[:end])):
            if number % 2:
                self._screen.draws = self._draws_lines and part == b"0"
            else:
                self._stream.feed(part)

    @property
    def draws(self) -> bool:
        """Whether letters are lines now."""
        return self._screen.draws

    def take_answers(self) -> str:
        """Return what the terminal has answered since the last call."""
        answers, self._screen.answers = self._screen.answers, ""
        return answers

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
        (y, x, cell, other_cell)
        for y, (row, other_row) in enumerate(
            zip(terminal.appearances(), wanted.appearances(), strict=True)
        )
        for x, (cell, other_cell) in enumerate(zip(row, other_row, strict=True))
        if cell != other_cell
    ]


def _appearance(cell: pyte.screens.Char) -> Appearance:
    lines = (cell.underscore, cell.strikethrough, cell.reverse)
    if cell.data == " " and not any(lines):
        return Appearance(" ", cell.bg)
    return Appearance(cell.data, cell.bg, cell.fg, (cell.bold, cell.italics, cell.blink, *lines))
