"""The budget of the headline: its cells are spent from the right end, the name gets the rest.

The end of the line tells the holder and the place in the code. So the name of the lock is cut
first, at its begin. Then the words go that tell least.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct
from rich.cells import cell_len

from locktop.tui.views.shorten import lock_name_in
from locktop.tui.views.styled_line import Line, Span, cut, head, line_text, make_line

#: Fewer cells of a name tell nothing.
MIN_NAME = 8
#: Where a line may end without its last clauses.
_CLAUSE_END = re.compile(r"[,;] ")
#: Cells of a name in a line that is too long in any case.
_NAME_BEFORE_CUT = 14


class Wording(Struct, frozen=True):
    """One way to say a headline."""

    before: tuple[Span | str, ...]
    after: tuple[Span | str, ...]
    #: The cells that the name needs, or as many as it has; None: it must be whole.
    min_name: int | None = None

    def line(self, name: str) -> Line:
        """The line with the lock called ``name``."""
        return make_line(*self.before, (name, "strong"), *self.after)


def fit_wording(name: str, wordings: Iterable[Wording], width: int) -> Line:
    """The first wording that leaves the name the cells that it needs, in ``width`` cells.

    Args:
        name: the whole name of the lock.
        wordings: the longest first, at least one. The end of the last one is cut if need be.
        width: cells.
    """
    for wording in wordings:
        room = width - cell_len(line_text(wording.line("")))
        short = lock_name_in(name, max(room, 0))
        is_whole = short == name if wording.min_name is None else not short.startswith("…")
        if 0 < cell_len(short) <= room and (is_whole or room >= (wording.min_name or width)):
            return wording.line(short)
    # The begin of the line tells most, so the end goes.
    line = wording.line(lock_name_in(name, min(_NAME_BEFORE_CUT, width)))
    if line_text(line).startswith(" …"):
        line = _whole_clauses(line, width)
    return tuple((text.replace("……", "…"), style) for text, style in cut(line, width))


def _whole_clauses(line: Line, width: int) -> Line:
    """``line`` without the clauses beyond ``width`` cells: one cut at both ends reads badly."""
    text = line_text(line)
    if cell_len(text) <= width:
        return line
    ends = [
        end.start() for end in _CLAUSE_END.finditer(text) if cell_len(text[: end.start()]) <= width
    ]
    return head(line, ends[-1]) if ends else line
