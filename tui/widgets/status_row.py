"""The second line of a screen: what the screen is about, and at its right end the state."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual import events

from locktop.tui.views.styled_line import Line, cut, line_text, merge
from locktop.tui.widgets.fixed_lines import FixedLines

#: Cells between the left and the right.
_GAP = 1


class StatusRow(FixedLines):
    """Shows one line; flags such as DEADLOCK or PAUSED are at its right end and never cut."""

    def __init__(self) -> None:
        super().__init__(id="status")
        self._left: Line = ()
        self._flags: Line = ()

    def room(self, width: int) -> int:
        """The cells beside the flags in a screen of ``width`` cells."""
        return max(0, width - cell_len(line_text(self._flags)) - _GAP) if self._flags else width

    def show(self, lines: Sequence[Line]) -> None:
        """Show the first of ``lines`` at the left."""
        self._left = lines[0] if lines else ()
        self._draw()

    def set_flags(self, flags: Line) -> None:
        """Show ``flags`` at the right end."""
        if flags != self._flags:
            self._flags = flags
            self._draw()

    def on_resize(self, _: events.Resize) -> None:
        """Move the flags to the new end."""
        self._draw()

    def _draw(self) -> None:
        super().show((status_row(self._left, self._flags, self.size.width or 80),))


def status_row(left: Line, flags: Line, width: int) -> Line:
    """``left``, cut if need be, with ``flags`` at the right end of ``width`` cells."""
    if not flags:
        return cut(left, width)
    room = max(0, width - cell_len(line_text(flags)) - _GAP)
    left = cut(left, room)
    blanks = " " * (room + _GAP - cell_len(line_text(left)))
    return merge((*left, (blanks, "text"), *flags))
