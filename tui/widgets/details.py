"""The details panel: lines that scroll, with long lines wrapped."""

from __future__ import annotations

from collections.abc import Iterable

from textual import events
from textual.message import Message

from locktop.tui.views.styled_line import Line, line_text, unfolded, wrap
from locktop.tui.widgets.scroll_panel import ScrollPanel
from locktop.tui.widgets.strip_cache import PLAIN

#: The class of a screen whose details have the whole screen.
WHOLE_SCREEN = "zoomed"
#: The indentation of a wrapped line after its first piece.
_INDENT = 11


class Details(ScrollPanel):
    """Shows lines; those of a new subject start at the top."""

    class Outgrown(Message):
        """The lines were made for another width than that of the panel."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._made_for = 0  # the width of the panel when it got the lines
        self._lines: list[Line] = []
        self._subject: object = None
        self._whole: list[Line] = []  # neither folded nor wrapped
        self._is_open = False  # whether the user opened the folds
        self._match_line: int | None = None  # the line that a search found

    @property
    def whole_text(self) -> str:
        """All lines as text, with whole stacks."""
        return "\n".join(line_text(line).rstrip() for line in self._whole)

    @property
    def present_line(self) -> int:
        row = self._match_line
        in_sight = row is not None and self.top <= row < self.top + self.page
        return row if row is not None and in_sight else self.top

    def show_found(self, number: int) -> None:
        self._match_line = number
        self.scroll_line(number)

    def count(self) -> int:
        return len(self._lines)

    def content_line(self, number: int) -> tuple[Line, int]:
        return self._lines[number], PLAIN

    def show(self, subject: object, lines: Iterable[Line]) -> None:
        """Show ``lines`` about ``subject``; on the whole screen those inside of folded lines."""
        lines = list(lines)
        self._whole = list(unfolded(lines))
        if subject != self._subject:
            self._is_open = False
        # The widgets of a screen that has just closed have no screen.
        has_room = self.is_attached and self.screen.has_class(WHOLE_SCREEN)
        visible = unfolded(lines, has_room, self._is_open)
        self._made_for = self.size.width
        width = self._made_for - 1
        self._lines = [piece for line in visible for piece in wrap(line, width, _INDENT)]
        if subject != self._subject:
            self._subject = subject
            self.scroll_line(0)
        self.fit_height()
        self.paint_changes()

    def set_open(self, is_open: bool) -> None:
        """Open the lines with ▸ of this subject, or close them, from the next drawing on."""
        self._is_open = is_open

    def on_resize(self, _: events.Resize) -> None:
        """Ask for new lines if the present ones came before the layout."""
        if self.size.width != self._made_for:
            self.post_message(self.Outgrown())

    def move(self, rows: int) -> None:
        """Scroll down by ``rows``."""
        self.scroll_line(self.top + rows)

    def to_start(self) -> None:
        """Scroll to the first line."""
        self.scroll_line(0)

    def to_end(self) -> None:
        """Scroll to the last line."""
        self.scroll_line(self.count())
