"""Columns: which columns fit, their widths, and a row of cells as a line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from locktop.tui.views.cells import fit, fit_right, plain
from locktop.tui.views.styled_line import Line, line_text, merge

T = TypeVar("T")
Cell = tuple[str, str]  # text, style


class Column(Struct, Generic[T], frozen=True):
    """One column of a list of ``T``."""

    title: str
    width: int  # cells, the minimum of a flexible column
    cell: Callable[[T], Cell]
    fitting: Callable[[str, int], str] = fit  # puts the text into that many cells
    grow: int = 0  # share of the room that is left over
    limit: int = 0  # maximum width of a flexible column, 0 = no limit
    from_width: int = 0  # the column needs a list at least this wide
    below_width: int = 0  # and narrower than this, 0 = no limit
    shrinks: bool = False  # it gives cells to columns that would lie beyond the right edge
    #: Spans in that many cells, where a cell of one style is not enough.
    spans: Callable[[T, int], Line] | None = None


class Table(Struct, Generic[T], frozen=True):
    """Columns laid out for one width."""

    columns: tuple[Column[T], ...]
    widths: tuple[int, ...]

    def has(self, title: str) -> bool:
        """Whether the table has the column of that title."""
        return any(column.title == title for column in self.columns)

    def heading(self, marked: str = "") -> Line:
        """The titles. The list is sorted by the column with the title ``marked``."""
        spans: list[Cell] = [(" ", "label")]
        for column, width in zip(self.columns, self.widths, strict=True):
            fitting = fit_right if column.fitting is fit_right else fit
            style = "title" if column.title == marked else "label"
            spans += [(fitting(column.title, width), style), (" ", "label")]
        return merge(spans)

    def line(self, item: T, mark: Cell = (" ", "text")) -> Line:
        """``item`` as a line; ``mark`` is the character before it."""
        spans: list[Cell] = [mark]
        for column, width in zip(self.columns, self.widths, strict=True):
            if column.spans is not None:
                spans += (*column.spans(item, width), (" ", "text"))
                continue
            text, style = column.cell(item)
            # The blank is part of the same span: a span of its own costs bytes.
            spans.append((column.fitting(text, width) + " ", style))
        return merge(spans)


def chosen(columns: Sequence[Column[T]], titles: Sequence[str]) -> Sequence[Column[T]]:
    """Return the columns with these titles, in this order and at any width; without titles all.

    A title that no column has is left out. Upper and lower case are alike.
    """
    if not titles:
        return columns
    by_title = {column.title.casefold(): column for column in columns}
    columns_chosen = [
        by_title[title.casefold()] for title in titles if title.casefold() in by_title
    ]
    return [
        replace(column, from_width=0, below_width=0, shrinks=column.grow > 0)
        for column in columns_chosen
    ] or columns


def lay_out(columns: Sequence[Column[T]], width: int) -> Table[T]:
    """Choose the columns for ``width`` cells, and give the rest to the flexible columns."""
    chosen = [
        column
        for column in columns
        if width >= column.from_width and (not column.below_width or width < column.below_width)
    ]
    widths = [column.width for column in chosen]
    room = width - 1 - sum(widths) - len(widths)
    while room < 0 and (wide := _widest_flexible(chosen, widths)) is not None:
        widths[wide] -= 1
        room += 1
    while room > 0:
        growing = [
            i
            for i, column in enumerate(chosen)
            if column.grow and (not column.limit or widths[i] < column.limit)
        ]
        if not growing:
            break
        shares = sum(chosen[i].grow for i in growing)
        before = room
        for i in growing:
            limit = chosen[i].limit or widths[i] + room
            more = min(max(1, before * chosen[i].grow // shares), limit - widths[i], room)
            widths[i] += more
            room -= more
    return Table(tuple(chosen), tuple(widths))


def _widest_flexible(columns: Sequence[Column[T]], widths: Sequence[int]) -> int | None:
    """The number of the widest column that can give a cell to others; None without one."""
    flexible = [
        i for i, column in enumerate(columns) if column.shrinks and widths[i] > MIN_FLEXIBLE
    ]
    return max(flexible, key=lambda i: widths[i], default=None)


#: Cells that a flexible column keeps beside columns that the user chose.
MIN_FLEXIBLE = 8
#: Cells of the widest terminal that has columns of its own, and more.
_WIDEST = 400


def whole_row(columns: Sequence[Column[T]], item: T) -> str:
    """``item`` as plain text: each column of a wide terminal with its title, and no text cut."""
    texts = []
    table = lay_out(columns, _WIDEST)
    for column, width in zip(table.columns, table.widths, strict=True):
        if column.spans is not None:
            text = line_text(column.spans(item, width))
        else:
            text = column.cell(item)[0]
        texts.append(f"{column.title} {plain(text).strip() or '-'}".strip())
    return "  ".join(texts)
