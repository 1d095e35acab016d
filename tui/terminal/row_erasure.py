"""Rows whose changed part is erased first: then no blank between the new texts is sent."""

from __future__ import annotations

import re
from collections import Counter

from locktop.tui.terminal.cell_runs import (
    ERASE_CELLS_BYTES,
    ERASE_ROW,
    MOVE_BYTES,
    Row,
    Run,
    runs_of,
)

#: A movement over fewer blanks is no shorter.
_MANY_BLANKS = re.compile(f" {{{MOVE_BYTES + 1},}}")


def shorter_by_erasure(y: int, old: Row, new: Row, plain: list[Run]) -> list[Run]:
    """Return the output that changes a row, the first of which erases all between the changes.

    The result is ``plain`` if this is shorter, or if a row has wide characters or marks. Erased
    cells get the background of the style.
    """
    if sum(_saved_bytes(run) for run in plain) <= ERASE_CELLS_BYTES:
        return plain
    changed = [x for x, cell in enumerate(new) if cell is not old[x] and cell != old[x]]
    blanks = Counter(cell for x in changed if (cell := new[x]) is not None and cell.is_blank)
    if not blanks:
        return plain
    [(fill, count)] = blanks.most_common(1)
    if count <= ERASE_CELLS_BYTES or _has_odd(old) or _has_odd(new):
        return plain
    begin, end = changed[0], changed[-1] + 1
    text = f"\x1b[{end - begin}X"
    if all(cell == fill for cell in new[end:]):
        text, end = ERASE_ROW, len(new)
    erasure = Run(y, begin, fill.style, text, begin, is_blank=True)
    erased = [*old[:begin], *[fill] * (end - begin), *old[end:]]
    others = runs_of(y, erased, new, erases=True, may_be_odd=False)
    erasure.goes_first = any(run.style.background != fill.style.background for run in others)
    return min(plain, [erasure, *others], key=_estimated_bytes)


def _saved_bytes(run: Run) -> int:
    """The most bytes that an erasure of the row saves in one run."""
    if run.text.startswith("\x1b"):
        return ERASE_CELLS_BYTES - MOVE_BYTES
    return len(run.text) - len(_MANY_BLANKS.sub("", run.text))


def _has_odd(row: Row) -> bool:
    return any(cell is not None and len(cell.text) != 1 for cell in row)


def _estimated_bytes(runs: list[Run]) -> int:
    return sum(MOVE_BYTES + 1 + len(run.text.encode()) for run in runs)
