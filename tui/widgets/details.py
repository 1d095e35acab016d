"""The details of what was chosen: lines to read and to scroll."""

from __future__ import annotations

from rich.cells import cell_len

from locktop.tui.lines.runs import Line, Row, line_text
from locktop.tui.widgets.painting import PLAIN
from locktop.tui.widgets.sheet import Sheet

_SIDEWAYS = 16


class Details(Sheet):
    """Shows rows; a new subject starts at its top."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._rows: tuple[Row, ...] = ()
        self._subject: object = None
        self._shift = 0

    def count(self) -> int:
        """See Sheet."""
        return len(self._rows)

    def content_line(self, number: int) -> tuple[Line, int]:
        """See Sheet."""
        return self._rows[number].line, PLAIN

    def shift(self, y: int) -> int:
        """See Painting; the title does not move."""
        return self._shift if y >= self.heads else 0

    def show(self, subject: object, rows: tuple[Row, ...]) -> None:
        """Show ``rows`` about ``subject``."""
        self._rows = rows
        if subject != self._subject:
            self._subject = subject
            self._shift = 0
            self.scroll_line(0)
        self.fit_height()
        self.paint_changes()

    def move(self, rows: int) -> None:
        """Scroll down by ``rows``."""
        self.scroll_line(self.top + rows)

    def to_start(self) -> None:
        """Scroll to the first line."""
        self.scroll_line(0)

    def to_end(self) -> None:
        """Scroll to the last line."""
        self.scroll_line(self.count())

    def sideways(self, steps: int) -> None:
        """Move the text to the left or back, for lines longer than the panel."""
        longest = max((cell_len(line_text(row.line)) for row in self._rows), default=0)
        most = max(0, longest - self.size.width)
        self._shift = max(0, min(self._shift + steps * _SIDEWAYS, most))
        self.refresh()
