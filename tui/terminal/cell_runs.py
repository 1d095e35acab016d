"""The output for changed cells: runs of one style, erased blanks, movements."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from msgspec import Struct

from locktop.tui.terminal.sgr import Attributes, blank

ERASE_ROW = "\x1b[K"
#: The sequence that erases some cells, with a movement behind them, has so many bytes.
ERASE_CELLS_BYTES = 10
#: A movement has at least so many bytes. To send fewer unchanged cells again is shorter.
MOVE_BYTES = 4


class Cell(NamedTuple):
    """A character with its marks. The second cell of a wide character has no text."""

    text: str
    style: Attributes

    @property
    def is_blank(self) -> bool:
        """Whether the cell shows only its background."""
        return self.text == " " and not self.style.flags


#: The cells of a row of the terminal; None: not known.
Row: TypeAlias = list[Cell | None]
#: A row and a column, each from 0 on.
Position: TypeAlias = tuple[int, int]


class Run(Struct):
    """Output for cells of one style that follow each other in a row."""

    y: int
    x: int
    style: Attributes
    text: str = ""
    end: int | None = None  # the column of the cursor afterwards; None: not known
    is_blank: bool = False  # every style with this background and no line does as well
    is_odd: bool = False  # terminals may differ in its width
    goes_first: bool = False  # the runs on other backgrounds paint over a part of its cells

    @property
    def behind(self) -> Position | None:
        """The position of the cursor afterwards."""
        return None if self.end is None else (self.y, self.end)

    def takes(self, cell: Cell | None) -> bool:
        """Whether the run may go on with the cell; take over the style of its first character."""
        if cell is None or len(cell.text) != 1:
            return False
        if cell.is_blank:
            return blank(self.style) == cell.style
        if self.is_blank and blank(cell.style) == self.style:
            self.style, self.is_blank = cell.style, False
        return cell.style == self.style and not self.is_blank


def is_second(cell: Cell | None) -> bool:
    """Whether the cell is the second one of a wide character."""
    return cell is not None and not cell.text


def runs_of(y: int, old: Row, new: Row, erases: bool, may_be_odd: bool) -> list[Run]:
    """Return the output that changes a row.

    Args:
        y: the number of the row.
        old: what the terminal shows.
        new: what the terminal is to show.
        erases: whether erased cells get the background of the style.
        may_be_odd: whether ``new`` may have wide characters or marks.
    """
    changed = [x for x, cell in enumerate(new) if cell is not old[x] and cell != old[x]]
    if may_be_odd:
        changed = _add_odd(changed, new)
    runs: list[Run] = []
    done = 0
    for number, x in enumerate(changed):
        cell = new[x]
        if x < done or cell is None:
            continue
        if may_be_odd and ((width := _width(new, x)) > 1 or len(cell.text) > 1):
            runs.append(_odd_run(y, x, cell, width))
        elif erases and cell.is_blank and (erased := _erase(y, new, changed[number:])):
            run, done = erased
            runs.append(run)
        elif not (runs and _extend(runs[-1], new, x)):
            end = x + 1 if x + 1 < len(new) else None
            runs.append(Run(y, x, cell.style, cell.text, end, is_blank=cell.is_blank))
    return runs


def _add_odd(changed: list[int], new: Row) -> list[int]:
    """The columns to send, where those found have changed."""
    columns: set[int] = set()
    for x in changed:
        while is_second(new[x]):
            x -= 1
        columns.add(x)
        # Behind an odd character the terminal may show anything.
        while (cell := new[x]) is not None and (_width(new, x) > 1 or len(cell.text) > 1):
            x += _width(new, x)
            if x >= len(new):
                break
            columns.add(x)
    return sorted(columns)


def _width(row: Row, x: int) -> int:
    end = x + 1
    while end < len(row) and is_second(row[end]):
        end += 1
    return end - x


def _odd_run(y: int, x: int, cell: Cell, width: int) -> Run:
    """A character that some terminals show in fewer cells, which leaves blanks then."""
    text = " " * width + movement(None, (y, x)) + cell.text
    return Run(y, x, cell.style, text, is_odd=True)


def _extend(run: Run, row: Row, x: int) -> bool:
    """Let a run go on to column ``x``, over unchanged cells if these are few; False if not."""
    if run.end is None or x - run.end >= MOVE_BYTES or run.is_odd or run.text.startswith("\x1b"):
        return False
    if x == run.end and _is_next(run, row[x]):
        run.text += row[x].text  # type: ignore[union-attr]
        run.end = x + 1 if x + 1 < len(row) else None
        return True
    style, is_blank = run.style, run.is_blank
    cells = row[run.end : x + 1]
    if not all(run.takes(cell) for cell in cells):
        run.style, run.is_blank = style, is_blank
        return False
    run.text += "".join(cell.text for cell in cells if cell is not None)
    run.end = x + 1 if x + 1 < len(row) else None
    return True


def _is_next(run: Run, cell: Cell | None) -> bool:
    """Whether the cell has the style of the run itself, as most cells behind one have."""
    return (
        cell is not None
        and cell.style is run.style
        and len(cell.text) == 1
        and (not run.is_blank or cell.text == " ")
    )


def _erase(y: int, row: Row, changed: list[int]) -> tuple[Run, int] | None:
    """A run that erases the equal blanks from the first changed one on, and their end."""
    x = changed[0]
    cell, end = row[x], x
    while end < len(row) and row[end] == cell:
        end += 1
    within = [column for column in changed if column < end]
    last = within[-1] + 1
    if end == len(row) and len(within) > len(ERASE_ROW):
        text, last = ERASE_ROW, end
    elif len(within) > ERASE_CELLS_BYTES:
        text = f"\x1b[{last - x}X"
    else:
        return None
    assert cell is not None
    return Run(y, x, cell.style, text, end=x, is_blank=True), last


def movement(position: Position | None, to: Position, feeds: bool = False) -> str:
    """The shortest movement from one position to another."""
    y, x = to
    anywhere = f"\x1b[{y + 1};{x + 1}H" if x else f"\x1b[{y + 1}H" if y else "\x1b[H"
    if position is None or y < position[0]:
        return anywhere
    down = _steps(y - position[0], "B", "\v" if feeds else "")
    return min(down + _across(position[1], x), anywhere, key=len)


def _across(before: int, x: int) -> str:
    """The movement to another column of the row."""
    if x >= before:
        return _steps(x - before, "C")
    return min(_steps(before - x, "D", "\b"), "\r" + _steps(x, "C"), key=len)


def _steps(count: int, direction: str, single: str = "") -> str:
    """Some steps in one direction; ``single`` is one step, "" if there is no such character."""
    if not count:
        return ""
    steps = f"\x1b[{count}{direction}" if count > 1 else f"\x1b[{direction}"
    return single * count if single and count < len(steps) else steps
