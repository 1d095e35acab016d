"""A few lines that do not scroll: the status line, the headline or banner, the keys."""

from __future__ import annotations

from collections.abc import Sequence

from locktop.tui.views.styled_line import Line, cut
from locktop.tui.widgets.strip_cache import PLAIN, StripCache


class FixedLines(StripCache, can_focus=False):
    """Shows lines, cut at the width of the widget; its height is their number."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.lines: tuple[Line, ...] = ()

    def show(self, lines: Sequence[Line]) -> None:
        """Show ``lines``; only a new number of lines needs a new layout."""
        if len(lines) != len(self.lines):
            self.styles.height = max(1, len(lines))
        self.lines = tuple(cut(line, self.size.width or 80) for line in lines)
        self.paint_changes()

    def line_at(self, y: int) -> tuple[Line, int]:
        return (self.lines[y] if y < len(self.lines) else (), PLAIN)
