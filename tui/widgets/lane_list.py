"""A list of lanes: rows of cells of time, with a cursor that is a cell of a row."""

from __future__ import annotations

from itertools import pairwise

from locktop.tui.views.styled_line import Line, Span
from locktop.tui.views.timeline import CELLS_FROM
from locktop.tui.widgets.item_list import ItemList
from locktop.tui.widgets.strip_cache import PLAIN


class LaneList(ItemList):
    """Marks the name and one cell of the row in use; the other cells keep their styles."""

    cell = 0  # the number of the cell with the cursor

    def content_line(self, number: int) -> tuple[Line, int]:
        line, mark = super().content_line(number)
        if mark == PLAIN:
            return line, PLAIN
        return _mark_name(line, CELLS_FROM, self.cell), PLAIN


def _mark_name(line: Line, cells_from: int, cell: int) -> Line:
    """The line with the cursor's style on the name before the cells, and on one cell."""
    marked: list[Span] = []
    position, wanted = 0, cells_from + cell
    for text, style in line:
        for part in _parts(text, position, wanted):
            is_cursor = position < cells_from - 1 or position == wanted
            marked.append((part, "cursor" if is_cursor else style))
            position += len(part)
    return tuple(marked)


def _parts(text: str, position: int, wanted: int) -> list[str]:
    """Cut a text that begins at cell ``position`` before and behind cell ``wanted``."""
    inner = {min(max(0, edge - position), len(text)) for edge in (wanted, wanted + 1)}
    cuts = sorted({0, len(text)} | inner)
    return [text[begin:end] for begin, end in pairwise(cuts)]
