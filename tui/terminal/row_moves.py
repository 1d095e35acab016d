"""Rows that stand elsewhere afterwards: the terminal moves them itself."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from locktop.tui.terminal.cell_runs import Cell, Row
from locktop.tui.terminal.sgr import DEFAULT, change

#: A move has some 40 bytes, and leaves rows to be painted.
_MIN_ROWS = 3
_NO_STYLE = Cell(" ", DEFAULT)


class RowMove(NamedTuple):
    """The rows from ``top`` to ``bottom`` move down by ``by`` rows, up if that is negative.

    The rows that leave this part are lost. The rows that come in have the cell ``fill``.
    """

    top: int
    bottom: int
    by: int
    fill: Cell

    def output(self) -> str:
        """The output, from the default style to that of ``fill``."""
        margins = f"\x1b[{self.top + 1};{self.bottom + 1}r\x1b[{self.top + 1}H"
        style = change(DEFAULT, self.fill.style) if self.fill.style != DEFAULT else ""
        change_rows = f"\x1b[{self.by}L" if self.by > 0 else f"\x1b[{-self.by}M"
        return f"{margins}{style}{change_rows}\x1b[r"

    def moved(self, rows: Sequence[Row]) -> list[Row]:
        """The rows after the move."""
        part = rows[self.top : self.bottom + 1]
        come: list[Row] = [[self.fill] * len(part[0]) for _ in range(abs(self.by))]
        moved = [*come, *part[: -self.by]] if self.by > 0 else [*part[-self.by :], *come]
        return [*rows[: self.top], *moved, *rows[self.bottom + 1 :]]


def find_move(old: Sequence[Row], new: Sequence[Row], erases: bool) -> RowMove | None:
    """Return the move that has most of the changed rows where they are to be, None without one.

    Args:
        old: what the terminal shows.
        new: what the terminal is to show.
        erases: whether the rows that come in get the background of the style.
    """
    rows_by_text: dict[str, list[int]] = defaultdict(list)
    for y, row in enumerate(old):
        rows_by_text[_text(row)].append(y)
    rows_by_step: dict[int, list[int]] = defaultdict(list)
    for y, row in enumerate(new):
        if row == old[y] or not (text := _text(row)).strip():
            continue
        for before in rows_by_text.get(text, ()):
            if old[before] == row:
                rows_by_step[y - before].append(y)
    if not rows_by_step:
        return None
    by, moved = max(rows_by_step.items(), key=lambda item: len(item[1]))
    if len(moved) < _MIN_ROWS:
        return None
    top, bottom = min(moved[0], moved[0] - by), max(moved[-1], moved[-1] - by)
    come = new[top : top + by] if by > 0 else new[bottom + by + 1 : bottom + 1]
    return RowMove(top, bottom, by, _fill(come) if erases else _NO_STYLE)


def _text(row: Row) -> str:
    """The text of a row, "" if a cell is not known."""
    try:
        return "".join([cell.text for cell in row])  # type: ignore[union-attr]
    except AttributeError:
        return ""


def _fill(rows: Sequence[Row]) -> Cell:
    """The blank at the end of most of the rows."""
    blanks = Counter(row[-1] for row in rows if row[-1] is not None and row[-1].is_blank)
    return blanks.most_common(1)[0][0] if blanks else _NO_STYLE
