"""The widget of the first line. A screen that no view leads to has none."""

from __future__ import annotations

from textual import events

from locktop.tui.views.styled_line import Line
from locktop.tui.views.view_bar import view_bar
from locktop.tui.widgets.fixed_lines import FixedLines


class ViewBar(FixedLines):
    """Shows the views; the screen says which is in use."""

    def __init__(self, current: str) -> None:
        super().__init__(id="views")
        self._current = current
        self._flags: Line = ()

    def set_state(self, current: str, flags: Line) -> None:
        """Show that the view ``current`` is in use, with ``flags`` at the right end."""
        self._current, self._flags = current, flags
        self._draw()

    def on_resize(self, _: events.Resize) -> None:
        """Choose names that fit."""
        self._draw()

    def _draw(self) -> None:
        self.show((view_bar(self._current, self._flags, self.size.width or 80),))
