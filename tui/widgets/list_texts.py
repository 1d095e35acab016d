"""The texts of a screen that the user copies, and the line of the source that the screen is about.

A screen with more to say has a subclass.
"""

from __future__ import annotations

from collections.abc import Callable

from textual.screen import Screen

from locktop.tui.widgets.details import Details
from locktop.tui.widgets.item_list import ItemList


class ListTexts:
    """The texts of any screen of lists."""

    def __init__(self, screen: Screen[None], active_list: Callable[[], ItemList]) -> None:
        """``active_list``: returns the list in use."""
        self._screen = screen
        self._active_list = active_list

    def row(self) -> str:
        """The whole row under the cursor as plain text; "" without one."""
        return self._active_list().current_text

    def details(self) -> str:
        """The visible details as plain text; "" without any."""
        return next(
            (panel.whole_text for panel in self._screen.query(Details) if panel.display), ""
        )

    def report(self) -> Callable[[], str] | None:
        """Return what makes the text report, in another thread; None where there is none."""
        return None

    def source_line(self) -> tuple[str, int] | None:
        """The file and the line of the source; line 0 if only the file is known."""
        return None
