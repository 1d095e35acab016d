"""The filter that the user types: the last right one stays while the text is wrong."""

from __future__ import annotations

from locktop.collector.errors import LocktopError
from locktop.collector.render.words.row_filter import RowFilter, parse


class TypedFilter:
    """A filter, and what is wrong with the text.

    Attributes:
        filter: the filter of the last right text.
        error: what is wrong with the present text, "" if nothing is.
    """

    def __init__(self) -> None:
        self.filter = RowFilter()
        self.error = ""

    def type(self, text: str) -> None:
        """Take a new text."""
        try:
            self.filter, self.error = parse(text), ""
        except LocktopError as error:
            self.error = str(error)
