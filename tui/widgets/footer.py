"""The footer of a screen: its keys, or for some seconds a message."""

from __future__ import annotations

from textual.timer import Timer

from locktop.tui.views.styled_line import Line, wrap
from locktop.tui.widgets.fixed_lines import FixedLines


class Footer(FixedLines):
    """The footer grows with a message of several lines, and covers nothing."""

    def __init__(self) -> None:
        super().__init__(id="keys")
        self._keys: Line = ()
        self._messages: tuple[Line, ...] = ()
        self._until: Timer | None = None

    def set_keys(self, keys: Line) -> None:
        """Set the line of keys, also after a change of the width."""
        self._keys = keys
        self._draw()

    def show_message(self, lines: tuple[Line, ...], seconds: float) -> None:
        """Show ``lines``, wrapped, in place of an earlier message."""
        if self._until is not None:
            self._until.stop()
        self._messages = lines
        self._draw()
        self._until = self.set_timer(seconds, self.clear)

    def clear(self) -> None:
        """Show the keys again."""
        self._messages = ()
        self._draw()

    def _draw(self) -> None:
        width = self.size.width or 80
        told = tuple(piece for line in self._messages for piece in wrap(line, width, 1))
        self.show(told or (self._keys,))
