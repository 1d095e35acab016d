"""The texts of a screen that the user copies, and the line of the source that the screen is about.

A screen with more to say has a subclass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from locktop.tui.widgets.details import Details

if TYPE_CHECKING:
    from locktop.tui.widgets.list_screen import ListScreen


class ListTexts:
    """The texts of any screen of lists."""

    def __init__(self, screen: ListScreen) -> None:
        self.screen = screen

    def row(self) -> str:
        """The whole row under the cursor as plain text; "" without one."""
        return self.screen.active_list().current_text

    def details(self) -> str:
        """The visible details as plain text; "" without any."""
        return next((one.whole_text for one in self.screen.query(Details) if one.display), "")

    def report(self) -> Callable[[], str] | None:
        """Return what makes the text report, in another thread; None where there is none."""
        return None

    def source_line(self) -> tuple[str, int] | None:
        """The file and the line of the source; line 0 if only the file is known."""
        return None
