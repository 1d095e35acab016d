"""The base of the screens over time: what is read, what is visible, and where the cursor is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from msgspec import Struct
from textual import events
from textual.app import ComposeResult
from textual.containers import Container

from locktop.collector.errors import LocktopError
from locktop.collector.model import Snapshot, TimeLine, Window
from locktop.collector.recording.time_lines import TimeLineReader, TooManyRecordsError
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.time_view import TimeView
from locktop.tui.views.timeline import cell_count, position_line
from locktop.tui.widgets.details import Details
from locktop.tui.widgets.item_list import ItemList
from locktop.tui.widgets.lane_list import LaneList
from locktop.tui.widgets.list_screen import ListScreen
from locktop.tui.widgets.scroll_panel import ScrollPanel

#: After a reading there is no other one of new snapshots for this many times as long.
_RARER = 9.0
_ERROR_S = 15.0


class OpenedPast(Struct, frozen=True):
    """The past that a screen over time shows, and the moment where its cursor begins."""

    reader: TimeLineReader
    at_ns: int | None = None  # nanoseconds since 1970; None: the newest moment
    is_over: Callable[[], bool] = lambda: False  # whether nothing new comes
    now: Callable[[], float] = time.monotonic  # a monotonic clock in seconds


class TimeScreen(ListScreen):
    """Reads the past in another thread, and moves over it."""

    WHAT = ""  # the title in the first line

    def __init__(self, past: OpenedPast) -> None:
        """Make the screen. Raises LocktopError if there is no past yet."""
        super().__init__()
        self._reader = past.reader
        self._is_over = past.is_over
        #: The moment that the screen below is to show, nanoseconds since 1970.
        self.chosen_ns: int | None = None
        #: Whether the user goes on to the other screen over time.
        self.wants_other = False
        self._now = past.now
        self._view = TimeView.create(*past.reader.bounds(), past.at_ns)
        self._line: TimeLine | None = None  # what was read last
        self._index: SnapshotIndex | None = None
        self._is_reading = False
        self._is_closed = False
        self._next_at = float("-inf")
        # Made here: the screen may close before Textual has mounted them.
        self._lanes = LaneList(id="lanes")
        self._cell = Details(id="cell")

    def compose(self) -> ComposeResult:
        """The widgets from the top."""
        yield from self.compose_top()
        with Container(id="time-body"):
            yield self._lanes
            yield self._cell
        yield from self.compose_footer()

    def on_mount(self) -> None:
        """Read the visible part."""
        self._lanes.focus()
        self.refresh_view()

    def on_unmount(self) -> None:
        """Read no more: a reading that waits for another one would hold up the next screen."""
        self._is_closed = True

    # The parts that subclasses draw

    def draw_body(self, line: TimeLine, index: SnapshotIndex, window: Window) -> None:
        """Draw the headline, the rows and the details."""
        raise NotImplementedError

    # Reading

    @property
    def view(self) -> TimeView:
        """The visible part and the cursor. Another screen may hand over its own before mounting."""
        return self._view

    @view.setter
    def view(self, view: TimeView) -> None:
        self._view = view

    @property
    def window(self) -> Window:
        """The visible cells."""
        return self._view.window(cell_count(self.size.width or 80))

    def show_snapshot(self, _: Snapshot) -> None:
        """A newer snapshot is in the memory: follow it, if the right edge is at now."""
        is_due = not self._is_reading and self._now() >= self._next_at
        if self._view.follows and self.is_current and is_due:
            self.take_bounds()
            self.refresh_view()

    def take_bounds(self) -> None:
        """Take what is kept now."""
        try:
            self._view.set_bounds(*self._reader.bounds())
        except LocktopError as error:
            self.show_error(error)

    def refresh_view(self) -> None:
        """Draw what is known of the visible part, and read the rest."""
        if not self._is_covered() and not self._is_reading:
            self._is_reading = True
            self.start(self._read, "read")
        self.draw()

    def _read_now(self, from_ns: int, to_ns: int) -> tuple[TimeLine, SnapshotIndex]:
        line = self._reader.read(from_ns, to_ns, lambda: not self._is_closed)
        return line, SnapshotIndex(line.snapshot)

    def _is_covered(self) -> bool:
        """Whether what was read has the whole visible part."""
        line, view = self._line, self._view
        return line is not None and line.from_ns <= view.from_ns and view.to_ns <= line.to_ns

    async def _read(self) -> None:
        """Read until the visible part is there; keys are handled meanwhile."""
        try:
            while True:
                self.take_bounds()  # a memory forgets its oldest part
                view = self._view
                wanted = view.from_ns, view.to_ns
                began = self._now()
                margin = view.span_ns // 2
                try:
                    line, index = await asyncio.to_thread(
                        self._read_now, wanted[0] - margin, wanted[1] + margin
                    )
                except TooManyRecordsError as error:
                    # The margins make the span twice as long as the visible one.
                    view.shorten(min(error.span_ns, view.span_ns) // 2)
                    said = "Too many waits and holds for one picture: it shows a shorter time."
                    self.show_message(said, style="waiting", seconds=_ERROR_S)
                    continue
                ended = self._now()
                self._next_at = ended + _RARER * (ended - began)
                self._line, self._index = line, index
                self.draw()
                if self._is_covered():
                    break
        finally:
            self._is_reading = False
        self.draw()

    # Drawing

    def draw(self) -> None:
        """Draw all, with what was read."""
        if not self.is_mounted or not self.size.width:
            return
        width = self.size.width
        if self._line is None or self._index is None:
            self.first_line.show((((" reading …", "label"),),))
            return
        process = self._line.snapshot.process
        self.first_line.show(
            (
                position_line(
                    self.WHAT, f"{process.comm} {process.pid}", self._view,
                    self.window.count, width, is_over=self._is_over(),
                    is_reading=self._is_reading and not self._is_covered(),
                ),
            )
        )  # fmt: skip
        self.draw_body(self._line, self._index, self.window)

    def on_resize(self, _: events.Resize) -> None:
        """Draw for the new size."""
        self.call_after_refresh(self._redraw)

    def on_screen_resume(self) -> None:
        """Draw what changed while another screen was above."""
        self.call_after_refresh(self._redraw)

    def _redraw(self) -> None:
        self.show_keys()
        self.refresh_view()

    # ListScreen

    def active_list(self) -> ItemList:
        return self._lanes

    def focused_panel(self) -> ScrollPanel:
        return self._lanes

    def apply_filter(self) -> None:
        self.draw()

    # Actions, as named in actions.py

    def action_cell(self, cells: int) -> None:
        """Move the cursor."""
        self._view.move(cells, self.window.count)
        self.refresh_view()

    def action_pan(self, halves: int) -> None:
        """Go half a screen earlier or later."""
        self.take_bounds()
        self._view.pan(halves)
        self.refresh_view()

    def action_zoom(self, steps: int) -> None:
        """Show less or more time."""
        self.take_bounds()
        self._view.zoom(steps)
        self.refresh_view()

    def action_whole(self) -> None:
        """Show all that is kept."""
        self.take_bounds()
        self._view.whole()
        self.refresh_view()

    def action_edge(self, direction: int) -> None:
        """Go to the oldest moment, or to now."""
        self.take_bounds()
        self._view.to_edge(direction)
        self.refresh_view()

    def go_to_other(self) -> None:
        """Close this screen, and let the other screen over time open with the same view."""
        self.wants_other = True
        self.dismiss()
