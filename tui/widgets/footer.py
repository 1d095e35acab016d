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
        self._outlasts_keys = False

    def set_keys(self, keys: Line) -> None:
        """Set the line of keys, also after a change of the width."""
        self._keys = keys
        self._draw()

    def show_message(self, lines: tuple[Line, ...], seconds: float, outlasts_keys: bool) -> None:
        """Show ``lines``, wrapped, in place of an earlier message.

        The message stays for that many ``seconds``, or unless it ``outlasts_keys`` until a key.
        """
        if self._until is not None:
            self._until.stop()
        self._messages, self._outlasts_keys = lines, outlasts_keys
        self._draw()
        self._until = self.set_timer(seconds, self.clear)

    def key_pressed(self) -> None:
        """Show the keys again, unless the message outlasts a key."""
        if self._messages and not self._outlasts_keys:
            self.clear()

    def clear(self) -> None:
        """Show the keys again."""
        self._messages = ()
        self._draw()

    def _draw(self) -> None:
        width = self.size.width or 80
        lines = tuple(piece for line in self._messages for piece in wrap(line, width, 1))
        self.show(lines or (self._keys,))
