"""Cells of a list: figures, bars and texts in the widths of their columns.

The figures are those of words/units.py, each bound to the width of its column here.
"""

from __future__ import annotations

import re
from functools import partial

from rich.cells import cell_len, set_cell_size

from locktop.collector.model import Held, Wait
from locktop.collector.render.words import units
from locktop.collector.render.words.plot import bar as bar
from locktop.collector.render.words.plot import sparkline as sparkline
from locktop.collector.render.words.units import clock as clock
from locktop.collector.render.words.units import count as count
from locktop.collector.render.words.units import counted as counted
from locktop.collector.render.words.units import exact as exact

#: Figures of a snapshot's recent waits, and cells of their line.
PARTS_OF_LAST_MINUTE = 12

_UNPRINTABLE = "?"

duration = partial(units.duration, width=units.DURATION_WIDTH)
#: A lower bound of a time. Its groups leave out the smaller unit, or the last digit.
_LOWER_BOUND = re.compile(r"(>\d+[dhm])\d\d[hms]|(>\d+(?:\.\d+)?)(?:\.\d|\d)(\D+)")

lasting = partial(units.lasting, width=units.DURATION_WIDTH)
percent = partial(units.percent, width=units.PERCENT_WIDTH)
size = partial(units.size, width=units.SIZE_WIDTH)


def plain(text: str) -> str:
    """``text`` with a question mark for each character that a terminal may obey."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _UNPRINTABLE for c in text)


def fit(text: str, width: int) -> str:
    """``text`` in exactly ``width`` cells: cut with an ellipsis or filled with blanks."""
    text = plain(text)
    if text.isascii():
        if len(text) <= width:
            return text.ljust(width)
    elif cell_len(text) <= width:
        return set_cell_size(text, width)
    if width <= 1:
        return "…"[:width]
    return set_cell_size(text, width - 1) + "…"


def fit_name(name: str, width: int) -> str:
    """Fit the name of a lane, with the number at its end: that alone may tell it from others."""
    head, colon, number = name.rpartition(":")
    if not head or not number.isdigit() or len(number) > width - 3 or cell_len(name) <= width:
        return fit(name, width)
    return fit(head, width - 1 - len(number)) + colon + number


def fit_right(text: str, width: int) -> str:
    """``text`` in exactly ``width`` cells, aligned to the right.

    The smaller unit or the last digit of a lower bound goes first: ``>56m``, ``>1.2ms``.
    """
    if len(text) > width and (bound := _LOWER_BOUND.fullmatch(text)):
        text = "".join(filter(None, bound.groups()))
    return text.rjust(width) if len(text) <= width else fit(text, width)


def waited_text(wait: Wait, before: str = " ") -> str:
    """How long a wait has lasted, after ``before``; "" where one sample alone has met it."""
    return before + lasting(wait.duration_s, wait.is_lower_bound) if wait.duration_s > 0.0 else ""


def held_text(held: Held | None) -> str:
    """How long a lock has been held, in a cell: "1.23s", ">1.23s", "-" if it is not known."""
    if held is None or held.duration_s is None:
        return "-"
    return lasting(held.duration_s, held.is_lower_bound)
