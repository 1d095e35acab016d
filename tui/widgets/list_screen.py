"""The base of the screens of lists: the footer with messages, the filter, keys that move."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Container
from textual.screen import Screen
from textual.widgets import Input

from locktop.collector.errors import LocktopError, reason_of
from locktop.collector.export.files import NotWrittenError
from locktop.tui.views.shorten import path_in
from locktop.tui.views.styled_line import make_line
from locktop.tui.widgets.filter import Filter
from locktop.tui.widgets.footer import Footer
from locktop.tui.widgets.item_list import ItemList
from locktop.tui.widgets.scroll_panel import ScrollPanel

#: How long the path of a new file stays in the last line.
_SAVED_S = 15.0


class ListScreen(Screen[None]):
    """A screen with a list, a filter and a footer."""

    def __init__(self) -> None:
        super().__init__()
        self.footer = Footer()
        self.filter = Filter(self.active_list, self._set_filter_words)
        self.filter_words = ""  # the words of the filter

    def compose_footer(self) -> ComposeResult:
        """The footer, and the filter in its place."""
        with Container(id="footer"):
            yield self.footer
            yield self.filter

    def active_list(self) -> ItemList:
        """The list that the filter is for."""
        raise NotImplementedError

    def focused_panel(self) -> ScrollPanel:
        """The panel that the keys move."""
        return self.active_list()

    def apply_filter(self) -> None:
        """Show the list for the new words of the filter."""
        raise NotImplementedError

    def show_message(self, *texts: str, style: str = "text", seconds: float = 6.0) -> None:
        """Show a message for that many ``seconds``, each text on a line of its own."""
        self.footer.show_message(tuple(make_line((f" {text}", style)) for text in texts), seconds)

    @work(exclusive=True, group="save")
    async def save(self, write: Callable[[], Path]) -> None:
        """Show where ``write``, which runs in another thread, has put a file, or why it did not."""
        try:
            path = await asyncio.to_thread(write)
        except (NotWrittenError, LocktopError, OSError) as error:
            reason = reason_of(error) if isinstance(error, OSError) else error
            self.show_message(f"Not saved: {reason}", style="stuck")
            return
        begin = "Saved "
        text = begin + path_in(path, self.size.width - len(begin) - 1)
        self.show_message(text, seconds=_SAVED_S)

    @on(Input.Changed, "#filter")
    def _filter_typed(self, event: Input.Changed) -> None:
        self._set_filter_words(event.value)

    def _set_filter_words(self, words: str) -> None:
        if words.strip() != self.filter_words:
            self.filter_words = words.strip()
            self.apply_filter()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """In the filter the key of the filter is a letter."""
        return action != "filter" or not self.filter.is_open

    def action_filter(self) -> None:
        """Open the filter."""
        self.filter.open()

    def action_move(self, rows: int) -> None:
        """Go up or down."""
        self.focused_panel().move(rows)

    def action_page(self, pages: int) -> None:
        """Go a page up or down."""
        panel = self.focused_panel()
        panel.move(pages * max(1, panel.page - 1))

    def action_start(self) -> None:
        """Go to the first line."""
        self.focused_panel().to_start()

    def action_end(self) -> None:
        """Go to the last line."""
        self.focused_panel().to_end()

    def action_oldest(self) -> None:
        """Go to the first line, as long as the screen is at now."""
        self.action_start()

    def action_newest(self) -> None:
        """Go to the last line, as long as the screen is at now."""
        self.action_end()
