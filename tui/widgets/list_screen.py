"""What every screen of lists has: the last line, a filter, keys that move, things to tell."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Container
from textual.screen import Screen
from textual.widgets import Input

from locktop.tui.views.styled_line import say
from locktop.tui.widgets.filter import Filter
from locktop.tui.widgets.footer import Footer
from locktop.tui.widgets.item_list import ItemList
from locktop.tui.widgets.scroll_panel import ScrollPanel


class ListScreen(Screen[None]):
    """See the module."""

    def __init__(self) -> None:
        super().__init__()
        self.foot = Footer()
        self.filter = Filter(self.list_in_use, self._want)
        self.wanted = ""  # the words of the filter

    def compose_foot(self) -> ComposeResult:
        """The last line."""
        with Container(id="foot"):
            yield self.foot
            yield self.filter

    def list_in_use(self) -> ItemList:
        """The list that a filter is for."""
        raise NotImplementedError

    def sheet_in_use(self) -> ScrollPanel:
        """What the keys move."""
        return self.list_in_use()

    def filtered(self) -> None:
        """Called when other words are wanted."""
        raise NotImplementedError

    def tell(self, *texts: str, style: str = "text", seconds: float = 6.0) -> None:
        """Say something for some ``seconds``, each text on a line of its own."""
        self.foot.tell(tuple(say((f" {text}", style)) for text in texts), seconds)

    @on(Input.Changed, "#filter")
    def _filtered(self, event: Input.Changed) -> None:
        self._want(event.value)

    def _want(self, words: str) -> None:
        if words.strip() != self.wanted:
            self.wanted = words.strip()
            self.filtered()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """In the filter its own key is a letter like any other."""
        return action != "filter" or not self.filter.is_open

    def action_filter(self) -> None:
        """Type words to filter by."""
        self.filter.open()

    def action_move(self, rows: int) -> None:
        """Up or down."""
        self.sheet_in_use().move(rows)

    def action_page(self, pages: int) -> None:
        """Up or down by what fits."""
        sheet = self.sheet_in_use()
        sheet.move(pages * max(1, sheet.page - 1))

    def action_start(self) -> None:
        """To the first line."""
        self.sheet_in_use().to_start()

    def action_end(self) -> None:
        """To the last line."""
        self.sheet_in_use().to_end()
