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
from locktop.tui.views.styled_line import cut, make_line
from locktop.tui.views.timeline import cell_count, position_line
from locktop.tui.widgets.details import Details
from locktop.tui.widgets.item_list import ItemList
from locktop.tui.widgets.lane_list import LaneList
from locktop.tui.widgets.list_screen import ListScreen
from locktop.tui.widgets.scroll_panel import ScrollPanel

#: Records and scans of the first reading, which comes while nothing is on the screen.
_FIRST_RECORDS, _FIRST_SCANS = 5_000, 16
#: Seconds between two drawings of the bar of a reading.
BAR_S = 0.25
#: After a reading there is no other one of new snapshots for this many times as long.
_RARER = 9.0
_ERROR_S = 15.0
#: The text below the bar of the first reading.
_FIRST = "A few scans make the first picture. Then come all scans, and single waits."
#: Why a key changes nothing here.
_WHOLE = "All that is kept is on the screen already."
_FINEST = "A cell cannot be shorter."
_NO_NEWER, _NO_OLDER = "Nothing newer is kept.", "Nothing older is kept."


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
        self._read_part = 0.0  # of the reading that goes on, 0..1
        self._read_for_ns = 0  # the visible span of the last reading
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
            self._is_reading, self._read_part = True, 0.0
            self.start(self._read, "read")
        self.draw()

    def _read_now(self, span: tuple[int, int], *limits: int) -> tuple[TimeLine, SnapshotIndex]:
        line = self._reader.read(*span, self._step, *limits)
        return line, SnapshotIndex(line.snapshot)

    def _step(self, part: float) -> None:
        """Called in the thread that reads."""
        if self._is_closed:
            raise LocktopError("nobody waits for this span of time")
        self._read_part = part

    def _is_covered(self) -> bool:
        """Whether what was read has the whole visible part, as finely as can be."""
        line, view = self._line, self._view
        if line is None or line.from_ns > view.from_ns or view.to_ns > line.to_ns:
            return False
        if line.is_coarse:
            return False
        # There may be few enough records in a smaller span.
        return not line.counted or 2 * view.span_ns > self._read_for_ns

    async def _read(self) -> None:
        """Read until the visible part is there; keys are handled meanwhile."""
        bar = self.set_interval(BAR_S, self._show_position)
        try:
            while True:
                self.take_bounds()  # a memory forgets its oldest part
                view = self._view
                visible, margin = (view.from_ns, view.to_ns), view.span_ns // 2
                span = view.from_ns - margin, view.to_ns + margin
                began, self._read_for_ns = self._now(), view.span_ns
                # Few scans and their counters come fast. Then all take their place, with records,
                # unless these are too many.
                try:
                    if not self._shows_span():
                        await self._read_span(visible, _FIRST_RECORDS, _FIRST_SCANS)
                    if self._line is None or self._line.counted or not self._is_covered():
                        await self._read_span(span)
                except TooManyRecordsError as error:
                    # The margins make the span twice as long as the visible one.
                    view.shorten(min(error.span_ns, view.span_ns) // 2)
                    said = "Too many waits and holds for one picture: it shows a shorter time."
                    self.show_message(said, style="waiting", seconds=_ERROR_S)
                    continue
                ended = self._now()
                self._next_at = ended + _RARER * (ended - began)
                if self._is_covered():
                    break
        finally:
            bar.stop()
            self._is_reading = False
        self.draw()

    def _shows_span(self) -> bool:
        """Whether some of the visible part is on the screen."""
        line, view = self._line, self._view
        return line is not None and line.from_ns < view.to_ns and view.from_ns < line.to_ns

    async def _read_span(self, span: tuple[int, int], *limits: int) -> None:
        """Read a span with at most so many records and scans, and draw it."""
        self._line, self._index = await asyncio.to_thread(self._read_now, span, *limits)
        self.draw()

    # Drawing

    def draw(self) -> None:
        """Draw all, with what was read."""
        if not self.is_mounted or not self.size.width:
            return
        self._show_position()
        if self._line is None:
            text = cut(make_line((f" {_FIRST}", "label")), self.size.width)
            self.headline_lines.show((text,))
        if self._line is None or self._index is None or self._is_behind(self._line):
            return
        self.draw_body(self._line, self._index, self.window)

    def _is_behind(self, line: TimeLine) -> bool:
        """Whether the newest moment, which the view follows, is still being read.

        Until then the former picture stays. An empty one would deny the waits of that moment.
        """
        follows = self._is_reading and self._view.follows
        return follows and not line.from_ns <= self._view.at_ns <= line.to_ns

    def _show_position(self) -> None:
        """Show what is visible, and how far the reading is."""
        process = self._line.snapshot.process if self._line is not None else None
        self.status_row.show(
            (
                position_line(
                    self.WHAT,
                    f"{process.comm} {process.pid}" if process is not None else "",
                    self._view,
                    self.window.count,
                    self.status_row.room(self.size.width),
                    is_over=self._is_over(),
                    read_part=self._read_part if self._is_reading else None,
                ),
            )
        )

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
        self._change(lambda view: view.pan(halves), _NO_NEWER if halves > 0 else _NO_OLDER)

    def action_zoom(self, steps: int) -> None:
        """Show less or more time."""
        self._change(lambda view: view.zoom(steps), _FINEST if steps > 0 else _WHOLE)

    def action_whole(self) -> None:
        """Show all that is kept."""
        self._change(TimeView.whole, _WHOLE)

    def action_edge(self, direction: int) -> None:
        """Go to the oldest moment, or to now."""
        reason = _NO_NEWER if direction > 0 else _NO_OLDER
        self._change(lambda view: view.to_edge(direction), reason)

    def _change(self, change: Callable[[TimeView], None], reason: str) -> None:
        """Change the visible span; where nothing changes, say the ``reason``."""
        self.take_bounds()
        before = self._view.from_ns, self._view.to_ns, self._view.at_ns
        change(self._view)
        if before == (self._view.from_ns, self._view.to_ns, self._view.at_ns):
            self.show_message(reason)
        self.refresh_view()

    def go_to_other(self) -> None:
        """Close this screen, and let the other screen over time open with the same view."""
        self.wants_other = True
        self.dismiss()
