"""The base of the screens with one list."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult

from locktop.tui.widgets.item_list import ItemList
from locktop.tui.widgets.list_screen import ListScreen


class OneListScreen(ListScreen):
    """A screen with one list between the lines at the top and the footer."""

    def __init__(self, name: str) -> None:
        """``name``: the id of the list in the style sheet."""
        super().__init__()
        self._list = ItemList(id=name)

    def compose(self) -> ComposeResult:
        """The widgets from the top."""
        yield from self.compose_top()
        yield from self.compose_body()
        yield from self.compose_footer()

    def compose_body(self) -> ComposeResult:
        """The list, and what a screen shows beside the list."""
        yield self._list

    def on_mount(self) -> None:
        """Give the list the focus."""
        self._list.focus()

    def on_resize(self, _: events.Resize) -> None:
        """Draw for the new size."""
        self.call_after_refresh(self.apply_filter)

    def active_list(self) -> ItemList:
        return self._list
