"""A panel: a title, column titles, and lines that scroll beneath them."""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len
from textual.geometry import Size
from textual.scroll_view import ScrollView

from locktop.tui.views.styled_line import Line, cut, line_text, make_line, merge
from locktop.tui.widgets.strip_cache import PLAIN, StripCache

#: The height that scrolls grows in steps of so many lines.
_HEIGHT_STEP = 16


class ScrollPanel(StripCache, ScrollView, can_focus=True, inherit_bindings=False):
    """The base of lists and of the details."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._titles: tuple[str, str] = ("", "")
        self._columns: Line = ()
        self._origin = 0  # the number of the line at which a search began

    @property
    def heads(self) -> int:
        """The number of rows at the top that do not scroll."""
        return 2 if self._columns else 1

    @property
    def page(self) -> int:
        """The number of visible rows that scroll."""
        return max(1, self.size.height - self.heads)

    @property
    def top(self) -> int:
        """The number of the first visible line."""
        return round(self.scroll_y)

    def count(self) -> int:
        """The number of lines that scroll."""
        raise NotImplementedError

    def content_line(self, number: int) -> tuple[Line, int]:
        """The line ``number`` of those that scroll."""
        raise NotImplementedError

    def move(self, rows: int) -> None:
        """Go down by ``rows``, up if that is negative."""
        raise NotImplementedError

    def to_start(self) -> None:
        """Go to the first line."""
        raise NotImplementedError

    def to_end(self) -> None:
        """Go to the last line."""
        raise NotImplementedError

    # Searching

    @property
    def present_line(self) -> int:
        """The number of the line from which a search goes on."""
        raise NotImplementedError

    def show_found(self, number: int) -> None:
        """Go to a line that a search found."""
        raise NotImplementedError

    def set_origin(self) -> None:
        """Begin a search at the present line."""
        self._origin = self.present_line

    def find_from_origin(self, words: str) -> bool:
        """Go to the first line with ``words`` from the origin on, or to the origin without one."""
        has_match = self._find(words, range(self._origin, self._origin + self.count()))
        if not has_match:
            self.show_found(self._origin)
        return has_match

    def find(self, words: str, direction: int) -> bool:
        """Go to the next line with ``words``, or with -1 to the one before; False without one."""
        begin, count = self.present_line, self.count()
        if direction > 0:
            return self._find(words, range(begin + 1, begin + count + 1))
        return self._find(words, range(begin + count - 1, begin - 1, -1))

    def _find(self, words: str, numbers: Iterable[int]) -> bool:
        wanted, count = words.casefold(), self.count()
        for number in numbers:
            if wanted in line_text(self.content_line(number % count)[0]).casefold():
                self.show_found(number % count)
                return True
        return False

    def set_heads(self, title: str, detail: str, columns: Line = ()) -> None:
        """Set the rows above the lines: the title with a detail, and the column titles."""
        self._titles = (title, detail)
        self._columns = columns

    def fit_height(self) -> None:
        """Set the height that scrolls, rounded up.

        A new height costs a layout and a painting of the whole panel. So the height shrinks only
        when a whole step more is free. The number of lines may go up and down with each snapshot.
        """
        lines, present = self.count(), self.virtual_size.height - self.heads
        if not lines <= present < lines + 2 * _HEIGHT_STEP:
            present = -(-lines // _HEIGHT_STEP) * _HEIGHT_STEP
        wanted = Size(self.size.width, max(self.size.height, present + self.heads))
        if wanted != self.virtual_size:
            self.virtual_size = wanted
        # The height is rounded up, so Textual would keep rows below the last line in sight.
        if self.top > max(0, lines - self.page):
            self.scroll_line(self.top)

    def scroll_line(self, number: int) -> None:
        """Scroll at once to line ``number`` at the top, but no further than the last page."""
        number = max(0, min(number, self.count() - self.page))
        self.scroll_to(y=number, animate=False, force=True, immediate=True)

    def show_line(self, number: int) -> None:
        """Scroll no further than needed to make line ``number`` visible."""
        if number < self.top:
            self.scroll_line(number)
        elif number >= self.top + self.page:
            self.scroll_line(number - self.page + 1)

    def line_at(self, y: int) -> tuple[Line, int]:
        if y == 0:
            return self._title_line(), PLAIN
        if y < self.heads:
            return self._columns, PLAIN
        number = y - self.heads + self.top
        return self.content_line(number) if number < self.count() else ((), PLAIN)

    def _title_line(self) -> Line:
        """The title, a rule, and the visible lines: ``─ Locks ── by wait ──── 1-9 of 43 ─``."""
        title, detail = self._titles
        used = self.has_focus
        position = self._position()
        width = self.size.width - 1
        left = make_line(
            ("▶ " if used else "─ ", "title" if used else "rule"),
            (title, "title" if used else "strong"),
            (f" {detail} " if detail else " ", "label"),
        )
        left = cut(left, max(0, width - cell_len(position)))
        rule = "─" * max(0, width - cell_len(line_text(left)) - cell_len(position))
        return merge((*left, (rule + position + "─", "rule")))

    def _position(self) -> str:
        count = self.count()
        if not count:
            return ""
        last = min(count, self.top + self.page)
        return f" {self.top + 1}-{last} of {count} " if last - self.top < count else f" {count} "
