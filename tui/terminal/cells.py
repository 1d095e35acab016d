"""The cells that the terminal shows: only those that change are sent.

Textual paints whole rows, and the whole screen for each layout. This module reads what Textual
paints, and keeps the cells. Other output passes through. Afterwards no cell is known, unless that
output is known to paint nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rich.cells import cell_len, split_graphemes

from locktop.tui.terminal.cell_runs import (
    Cell,
    Position,
    Row,
    Run,
    is_second,
    runs_of,
)
from locktop.tui.terminal.description import Abilities
from locktop.tui.terminal.row_erasure import shorter_by_erasure
from locktop.tui.terminal.row_moves import find_move
from locktop.tui.terminal.run_order import byte_count, shortest_output
from locktop.tui.terminal.sgr import DEFAULT, Attributes, apply, blank

#: A part of what Textual paints: a position, a style, the end of a line, text.
_PART = re.compile(r"\x1b\[([0-9;]*)([Hm])|\r?\n|([^\x00-\x1f\x7f-\x9f]+)")
#: A change of the style.
_STYLE = re.compile(r"\x1b\[[0-9;:]*m")
#: Output that leaves cells, position and style alone: modes, questions, the clipboard, a bell.
_NO_PAINT = re.compile(
    r"(?:\x1b\[[?>=<][0-9;]*(?:\$p|[hlu])|\x1b\[[0-9]* q|\x1b\][^\x07\x1b]*\x07|\x07)+"
)
#: The screens of a terminal, with cells of their own.
_OTHER_SCREEN = re.compile(r"\x1b\[\?(?:[0-9;]*;)?(?:47|1047|1049)[;hl]")
#: A search for rows that move costs time. An output of one update or one key is mostly shorter.
_MOVE_FROM_BYTES = 600
#: More styles than the themes and views have.
_MAX_STYLES = 1024


class _CellsOfStyle(dict[str, Cell]):
    """The cells of one style by their text. Equal cells are mostly one object."""

    def __init__(self, style: Attributes) -> None:
        super().__init__()
        self._style = style

    def __missing__(self, text: str) -> Cell:
        cell = self[text] = Cell(text, blank(self._style) if text == " " else self._style)
        return cell


class _NotPaintedError(Exception):
    """The output is not what Textual paints on a screen of this size."""


class _Painting:
    """The rows after one piece of output."""

    def __init__(self, before: list[Row]) -> None:
        self._before = before
        self.rows: dict[int, Row] = {}  # those that it paints
        self.style = DEFAULT
        self.position: Position | None = None

    def write(self, cells: Row) -> None:
        """Put cells at the position."""
        if self.position is None or self.position[0] >= len(self._before):
            raise _NotPaintedError
        y, x = self.position
        if y not in self.rows:
            self.rows[y] = self._before[y].copy()
        row, end = self.rows[y], x + len(cells)
        if end > len(row):
            raise _NotPaintedError
        # Terminals differ in what is left of a wide character without its other half.
        if 0 < x < len(row) and is_second(row[x]):
            row[x - 1] = None
        if end < len(row) and is_second(row[end]):
            row[end] = None
        row[x:end] = cells
        self.position = (y, end)


class TerminalCells:
    """Reduces the output for one terminal to the cells that change."""

    def __init__(self, abilities: Abilities) -> None:
        """``abilities``: those of the terminal."""
        #: Another thread may set others at any time.
        self.abilities = abilities
        self._rows: list[Row] = []
        #: The rows that have had wide characters or marks since the size is known.
        self._odd_rows: set[int] = set()
        self._cells: dict[Attributes, _CellsOfStyle] = {}
        self._position: Position | None = None  # None: not known

    def resize(self, width: int, height: int) -> None:
        """Take over the size of the terminal. No cell is known then."""
        self._rows = [[None] * width for _ in range(height)]
        self._odd_rows = set()
        self._position = None

    def forget(self) -> None:
        """Know no cell: the next painting is sent whole."""
        self.resize(len(self._rows[0]) if self._rows else 0, len(self._rows))

    def reduce(self, data: str) -> str:
        """Return what makes the terminal show ``data``. The style is the default afterwards."""
        if _NO_PAINT.fullmatch(data) and not _OTHER_SCREEN.search(data):
            return data
        try:
            painting = self._read(data)
        except _NotPaintedError:
            self.forget()
            return f"{data}\x1b[m" if _STYLE.search(data) else data
        before, rows, end = self._rows, self._rows.copy(), painting.position
        for y, row in painting.rows.items():
            rows[y] = row
        runs = self._runs(before, rows)
        if not runs and end in (None, self._position):
            return ""
        self._rows, self._position = rows, end
        abilities = self.abilities
        output = shortest_output(runs, end, abilities)
        if abilities.moves_rows and len(output) >= _MOVE_FROM_BYTES:
            move = find_move(before, rows, abilities.erases)
            if move is not None:
                runs, style = self._runs(move.moved(before), rows), move.fill.style
                rest = shortest_output(runs, end, abilities, style)
                output = min(output, move.output() + rest, key=byte_count)
        return output

    def _runs(self, old: list[Row], new: list[Row]) -> list[Run]:
        """The output that changes some rows, from the top."""
        runs: list[Run] = []
        erases = self.abilities.erases
        for y, row in enumerate(new):
            if row is not old[y] and row != old[y]:
                of_row = runs_of(y, old[y], row, erases, y in self._odd_rows)
                runs += shorter_by_erasure(y, old[y], row, of_row) if erases else of_row
        return runs

    def _read(self, data: str) -> _Painting:
        painting, position = _Painting(self._rows), 0
        for part in _PART.finditer(data):
            if part.start() != position:
                raise _NotPaintedError
            position = part.end()
            parameters, command, text = part.groups()
            if text:
                painting.write(self._cells_of(painting, text))
            elif command == "m":
                style = apply(painting.style, parameters)
                if style is None:
                    raise _NotPaintedError
                painting.style = style
            else:
                painting.position = _position(parameters) if command else None
        if position != len(data) or painting.style != DEFAULT:
            raise _NotPaintedError
        return painting

    def _cells_of(self, painting: _Painting, text: str) -> Row:
        style = painting.style
        if style not in self._cells:
            if len(self._cells) >= _MAX_STYLES:
                self._cells.clear()
            self._cells[style] = _CellsOfStyle(style)
        cells = self._cells[style]
        if text.isascii() or _is_narrow(text):
            return [cells[character] for character in text]
        if painting.position is not None:
            self._odd_rows.add(painting.position[0])
        row: Row = []
        for begin, end, width in split_graphemes(text)[0]:
            row += [cells[text[begin:end]], *[cells[""]] * (width - 1)] if width else []
        if len(row) != cell_len(text):
            raise _NotPaintedError
        return row


@lru_cache(4096)
def _is_narrow(text: str) -> bool:
    """Whether each character has one cell."""
    return all(cell_len(character) == 1 for character in text)


def _position(parameters: str) -> Position:
    row, _, column = parameters.partition(";")
    return max(0, int(row or 1) - 1), max(0, int(column or 1) - 1)
