"""A screen that closes once, however fast the keys come."""

from __future__ import annotations

from textual.await_complete import AwaitComplete
from textual.geometry import Size
from textual.screen import Screen, ScreenResultType


class ClosingScreen(Screen[ScreenResultType]):
    """Closes only as the topmost screen.

    A key that was typed with the closing key may still come to the closed screen. Textual would
    then close the screen below.
    """

    def _screen_resized(self, size: Size) -> None:
        """Lay out for the present size of the terminal.

        A new size makes Textual post one more event with this size. Two events with different
        sizes would therefore follow each other for ever, and no key would be handled.
        """
        super()._screen_resized(self.app.size)

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close the screen, unless it is closed already or another screen is above."""
        # Textual's is_current is also true of a screen below a dialogue.
        is_topmost = self.app.screen_stack[-1:] == [self]
        return super().dismiss(result) if is_topmost else AwaitComplete()
