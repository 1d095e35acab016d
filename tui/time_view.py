"""Which part of the past a screen shows, and where its cursor is. Nothing of Textual is here."""

from __future__ import annotations

from msgspec import Struct

from locktop.collector.model import Window

#: The shortest visible span, nanoseconds.
MIN_SPAN_NS = 1_000
#: The span that a screen shows first.
FIRST_SPAN_NS = 60_000_000_000


class TimeView(Struct):
    """The visible span and the cursor. All times are nanoseconds since 1970."""

    first_ns: int  # the oldest moment that is kept
    last_ns: int  # the newest one
    from_ns: int
    to_ns: int
    at_ns: int  # of the cursor
    #: The right edge and the cursor stay at the newest moment, until the user moves the cursor.
    follows: bool = True

    @staticmethod
    def create(first_ns: int, last_ns: int, at_ns: int | None = None) -> TimeView:
        """Return a view of the newest part, or of the part around ``at_ns``."""
        from_ns = max(first_ns, last_ns - FIRST_SPAN_NS)
        view = TimeView(first_ns, last_ns, from_ns, last_ns, last_ns)
        if at_ns is not None and at_ns < last_ns:
            view.go_to(at_ns)
        return view

    @property
    def span_ns(self) -> int:
        """The length of the visible span."""
        return self.to_ns - self.from_ns

    def window(self, count: int) -> Window:
        """Return the visible span as so many cells."""
        return Window(from_ns=self.from_ns, to_ns=self.to_ns, count=count)

    def set_bounds(self, first_ns: int, last_ns: int) -> None:
        """Take what is kept now; the view follows the newest moment if it did.

        A view that follows, and shows all that is kept, grows to the span that is shown first.
        """
        moved = last_ns - self.last_ns
        shows_all = self.from_ns <= self.first_ns
        self.first_ns, self.last_ns = first_ns, last_ns
        if self.follows and shows_all and self.span_ns < FIRST_SPAN_NS:
            span_ns = min(FIRST_SPAN_NS, last_ns - first_ns)
            self._show(last_ns - span_ns, span_ns)
            self.at_ns = last_ns
        elif self.follows:
            self._show(self.from_ns + moved, self.span_ns)
            self.at_ns = last_ns
        else:
            self._show(self.from_ns, self.span_ns)

    def move(self, cells: int, count: int) -> None:
        """Put the cursor so many cells to the right; ``count``: the visible cells."""
        window = self.window(count)
        cell = window.cell_at(self.at_ns) + cells
        if 0 <= cell < count:
            self.at_ns = (window.edge_ns(cell) + window.edge_ns(cell + 1)) // 2
        else:
            self.go_to(self.at_ns + cells * max(1, self.span_ns // count))
        self.follows = False

    def pan(self, halves: int) -> None:
        """Go so many halves of the visible span to the right, with the cursor."""
        by_ns = halves * self.span_ns // 2
        self.at_ns = self._inside(self.at_ns + by_ns)
        self._show(self.from_ns + by_ns, self.span_ns)
        self.follows = False

    def zoom(self, steps: int) -> None:
        """Show half of the time for each step, or twice the time; the cursor stays in its cell."""
        span_ns = self.span_ns
        wanted = span_ns >> steps if steps > 0 else span_ns << -steps
        wanted = max(MIN_SPAN_NS, min(wanted, self.last_ns - self.first_ns))
        before = self.at_ns - self.from_ns
        self._show(self.at_ns - before * wanted // max(1, span_ns), wanted)
        self.follows = self.follows and self.to_ns == self.last_ns

    def shorten(self, span_ns: int) -> None:
        """Show at most so much time around the cursor."""
        if span_ns < self.span_ns:
            before = self.at_ns - self.from_ns
            wanted = max(MIN_SPAN_NS, span_ns)
            self._show(self.at_ns - before * wanted // max(1, self.span_ns), wanted)

    def whole(self) -> None:
        """Show all that is kept."""
        self._show(self.first_ns, self.last_ns - self.first_ns)

    def to_edge(self, direction: int) -> None:
        """Go to the oldest moment, or with a positive ``direction`` to the newest."""
        self.go_to(self.last_ns if direction > 0 else self.first_ns)
        self.follows = direction > 0

    def go_to(self, time_ns: int) -> None:
        """Put the cursor on a moment, and show it."""
        self.at_ns = self._inside(time_ns)
        if not self.from_ns <= self.at_ns < self.to_ns:
            self._show(self.at_ns - self.span_ns // 2, self.span_ns)
        self.follows = False

    def _show(self, from_ns: int, span_ns: int) -> None:
        span_ns = min(span_ns, self.last_ns - self.first_ns)
        self.from_ns = max(self.first_ns, min(from_ns, self.last_ns - span_ns))
        self.to_ns = self.from_ns + span_ns
        self.at_ns = min(max(self.at_ns, self.from_ns), self.to_ns)

    def _inside(self, time_ns: int) -> int:
        return min(max(time_ns, self.first_ns), self.last_ns)
