"""A list with a cursor that stays on its item when rows move."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events
from textual.message import Message

from locktop.tui.views.styled_line import Line, line_text, make_line
from locktop.tui.widgets.scroll_panel import ScrollPanel
from locktop.tui.widgets.strip_cache import CURSOR, CURSOR_ELSEWHERE, PLAIN


class ItemList(ScrollPanel):
    """Shows ids in the given order; formats only the visible rows."""

    class Moved(Message):
        """The cursor is on another item."""

        def __init__(self, source: ItemList, by_itself: bool) -> None:
            """``by_itself``: because the list changed, not because the user moved the cursor."""
            super().__init__()
            self.source = source
            self.by_itself = by_itself

        def can_replace(self, message: Message) -> bool:
            """Only the present row matters, and whether the user put the cursor there."""
            return (
                isinstance(message, ItemList.Moved)
                and message.source is self.source
                and (self.by_itself or not message.by_itself)
            )

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._ids: Sequence[int] = ()
        self._row: Callable[[int], Line] = lambda _: ()
        self._lines: dict[int, Line] = {}  # by id: a row is compared first, and painted later
        self._cursor = 0
        #: Returns why there are no rows, for the first line; "" if nothing is to say.
        self.about_empty: Callable[[], str] = lambda: ""
        #: Whether the user chose a row. Until then the cursor stays on the first row.
        self.chosen = False

    @property
    def current(self) -> int | None:
        """The id under the cursor."""
        return self._ids[self._cursor] if self._cursor < len(self._ids) else None

    @property
    def current_text(self) -> str:
        """The row under the cursor as text, "" without one."""
        current = self.current
        return line_text(self._row(current)).strip() if current is not None else ""

    @property
    def present_line(self) -> int:
        return self._cursor

    def show_found(self, number: int) -> None:
        self.move_to(number)

    @property
    def visible_ids(self) -> Sequence[int]:
        """The ids in the visible rows."""
        return self._ids[self.top : self.top + self.page]

    def count(self) -> int:
        return len(self._ids)

    def content_line(self, number: int) -> tuple[Line, int]:
        mark = PLAIN
        if number == self._cursor:
            mark = CURSOR if self.has_focus else CURSOR_ELSEWHERE
        id_ = self._ids[number]
        line = self._lines.get(id_)
        if line is None:
            line = self._lines[id_] = self._row(id_)
        return line, mark

    def line_at(self, y: int) -> tuple[Line, int]:
        if not self._ids and y == self.heads:
            return make_line((f" {self.about_empty()}", "dim")), PLAIN
        return super().line_at(y)

    def show(self, ids: Sequence[int], row: Callable[[int], Line]) -> None:
        """Show ``ids``, each as the line ``row(id)``."""
        before = self.current
        was_visible = self.top <= self._cursor < self.top + self.page
        self._ids, self._row, self._lines = ids, row, {}
        if self.chosen and before is not None and before != self.current:
            self._cursor = _index(ids, before, self._cursor)
        elif not self.chosen:
            self._cursor = 0
        self._cursor = max(0, min(self._cursor, len(ids) - 1))
        self.fit_height()
        if was_visible:
            self.show_line(self._cursor)
        self.paint_changes()
        if self.current != before:
            self.post_message(self.Moved(self, by_itself=True))

    def choose(self, wanted: int, by_itself: bool = False) -> bool:
        """Put the cursor on the id ``wanted``; return False if the list does not have it.

        ``by_itself``: the user did not move the cursor.
        """
        if wanted not in self._ids:
            return False
        self.move_to(list(self._ids).index(wanted), by_itself)
        return True

    def move_to(self, number: int, by_itself: bool = False) -> None:
        """Put the cursor on row ``number`` or the nearest row. ``by_itself``: see ``choose``."""
        self.chosen = True
        before = self._cursor
        self._cursor = max(0, min(number, len(self._ids) - 1))
        self.show_line(self._cursor)
        self.paint_changes()
        if self._cursor != before:
            self.post_message(self.Moved(self, by_itself))

    def move(self, rows: int) -> None:
        """Move the cursor down by ``rows``."""
        self.move_to(self._cursor + rows)

    def to_start(self) -> None:
        """Put the cursor on the first row, where it stays."""
        self.move_to(0)
        self.chosen = False

    def to_end(self) -> None:
        """Put the cursor on the last row."""
        self.move_to(len(self._ids) - 1)

    def on_click(self, event: events.Click) -> None:
        """Choose the row under the mouse."""
        number = event.y - self.heads + self.top
        if event.y >= self.heads and number < len(self._ids):
            self.move_to(number)


def _index(ids: Sequence[int], wanted: int, otherwise: int) -> int:
    try:
        return ids.index(wanted)
    except ValueError:
        return otherwise
