"""The lists above the details: what they do not need, the details get."""

from __future__ import annotations

from textual.containers import Container
from textual.geometry import Size
from textual.reactive import Reactive

from locktop.tui.widgets.item_list import ItemList

#: The rows that a list may have. Rows come and go with each scan: with few heights, the details
#: seldom move. The heights depend on this scan alone, so that the past looks as it did.
_ROWS = (3, 5, 8, 12, 17, 23, 30)


class ListArea(Container):
    """Holds the lists. Beside the details the lists take all the room."""

    #: Without a second layout after each new height: the area does not scroll.
    virtual_size = Reactive(Size(0, 0))

    def fit(self) -> None:
        """Limit the height of each visible list to its rows, and the height of the area."""
        if self.screen.has_class("wide"):
            for widget in (self, *self.query(ItemList)):
                widget.styles.max_height = None
            return
        heights = 0
        for widget in self.query(ItemList):
            if widget.display:
                count = widget.count()
                rows = next((rows for rows in _ROWS if rows >= count), count)
                widget.styles.max_height = widget.heads + rows
                heights += widget.heads + rows
        self.styles.max_height = heights
