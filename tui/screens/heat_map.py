"""The heat map of waiting: choose a span and see its callers, choose another and compare."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import ClassVar

from textual import on
from textual.binding import BindingType

from locktop.collector.analysis.heat_map import waits_by_lock, waits_by_offset, waits_by_thread
from locktop.collector.model import Snapshot, TimeLine, Window
from locktop.collector.render.profiles.call_tree_difference import difference
from locktop.collector.render.profiles.profile import SnapshotProfile
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.bindings import bindings
from locktop.tui.screen_actions import HEAT_MAP
from locktop.tui.screens.call_tree import CallTreeScreen
from locktop.tui.screens.difference import DifferenceScreen
from locktop.tui.screens.heat_classes import HeatClasses, HeatRow
from locktop.tui.screens.time_screen import BAR_S, OpenedPast, TimeScreen
from locktop.tui.views.cells import duration, fit_name
from locktop.tui.views.heat_map import (
    ChosenSpan,
    cell_callers,
    cell_lines,
    heat_axis,
    heat_row,
    offset_rows,
    scale,
    seconds_axis,
    spans_line,
)
from locktop.tui.views.row_groups import fit_label
from locktop.tui.views.styled_line import Line, cut, line_text, make_line
from locktop.tui.views.timeline import losses, reading_bar
from locktop.tui.widgets.item_list import ItemList
from locktop.tui.widgets.list_screen import ListScreen

_NS = 1_000_000_000
_MAX_SPANS = 2
#: The seconds after which the message while a span is read goes in any case.
_LONG_S = 60.0


class HeatMapScreen(TimeScreen):
    """Rows of densities: of locks, of threads, or of the parts of a second."""

    SCREEN = HEAT_MAP
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(*HEAT_MAP.actions)]
    WHAT = "heat map"

    def __init__(self, past: OpenedPast) -> None:
        """Make the screen; see TimeScreen."""
        super().__init__(past)
        self._of_threads = False
        self._offsets_of: int | None = None  # rows are parts of a second: of this lock, 0 all
        self._parts = 0  # of a second
        self._shows_idle = False
        #: The rows that were summed up last, with what they were summed up of.
        self._sums: tuple[TimeLine, Window, bool, dict[int, list[int]]] | None = None
        self._lock_classes = HeatClasses()
        self._begin: int | None = None  # of the span that is being chosen
        self._spans: list[ChosenSpan] = []

    def action_timeline(self) -> None:
        """Show the same time as a time line."""
        self.go_to_other()

    # Drawing

    def draw_body(self, line: TimeLine, index: SnapshotIndex, window: Window) -> None:
        headline = spans_line(losses(line), self._spans, self._begin, self.size.width)
        self.headline_lines.show((headline,))
        if self._offsets_of is None:
            self._draw_rows(line, index, window)
        else:
            self._draw_offsets(line, index, window)
        self._draw_cell(line, index)

    def _draw_rows(self, line: TimeLine, index: SnapshotIndex, window: Window) -> None:
        rows = self._rows_of(line, index, window)
        most = max((max(row.sums) for row in rows.values()), default=0)
        cursor = window.cell_at(self._view.at_ns)
        self._lanes.cell = cursor
        self._lanes.set_heads(
            "Threads" if self._of_threads else "Locks",
            scale(most),
            heat_axis(window, cursor, self._spans, self._begin, line.counted),
        )
        fit_to = fit_name if self._of_threads else fit_label
        self._lanes.show(
            list(rows),
            lambda id_: heat_row(rows[id_].name, rows[id_].sums, most, window.count, fit_to=fit_to),
        )

    def _rows_of(self, line: TimeLine, index: SnapshotIndex, window: Window) -> dict[int, HeatRow]:
        """The rows in sight, by thread, or by lock and class of locks."""
        sums = self._sums_of(line, window)
        words = self.filter_words.lower()
        if self._of_threads:
            rows = {
                tid: HeatRow(index.thread_name(tid), row)
                for tid, row in sums.items()
                if words in index.thread_name(tid).lower()
            }
        else:
            rows = self._lock_classes.rows(sums, index, words)
        return {id_: row for id_, row in rows.items() if self._shows_idle or any(row.sums)}

    def _sums_of(self, line: TimeLine, window: Window) -> dict[int, list[int]]:
        """The sums of the rows, which a key that moves the cursor alone does not change."""
        kept_sums, of_threads = self._sums, self._of_threads
        if kept_sums is None or kept_sums[0] is not line or kept_sums[1:3] != (window, of_threads):
            if of_threads:
                sums = waits_by_thread(line.lanes, window)
            else:
                sums = waits_by_lock(line.lanes, window, line.counted)
            kept_sums = self._sums = line, window, of_threads, sums
        return kept_sums[3]

    def _seconds(self, window: Window) -> tuple[int, int, int]:
        """The first second, the number of seconds, and the characters of one, in this window."""
        first = self._view.from_ns // _NS
        seconds = min(window.count, -(-self._view.to_ns // _NS) - first)
        return first, seconds, max(1, min(4, window.count // max(1, seconds)))

    def _draw_offsets(self, line: TimeLine, index: SnapshotIndex, window: Window) -> None:
        assert self._offsets_of is not None
        first, seconds, columns = self._seconds(window)
        parts = offset_rows(self._lanes.page)
        locks = self._lock_classes.locks(self._offsets_of)
        grid = waits_by_offset(line.lanes, first, seconds, parts, locks)
        most = max((max(row) for row in grid), default=0)
        at_ns = self._view.at_ns
        cursor = min(max(0, at_ns // _NS - first), seconds - 1)
        self._lanes.cell = cursor * columns
        subject = self._lock_classes.name(self._offsets_of, index) if locks else "all locks"
        self._lanes.set_heads(
            f"Parts of a second, {subject}",
            scale(most),
            seconds_axis(first, seconds, columns, cursor, self._spans, window.count),
        )
        if parts != self._parts:
            self._parts = parts
            self._lanes.chosen = True
        names = [f"from {number * 1000 // parts:>3} ms" for number in range(parts)]
        rows = list(range(parts))
        self._lanes.show(
            rows, lambda number: heat_row(names[number], grid[number], most, window.count, columns)
        )
        self._lanes.choose(at_ns % _NS * parts // _NS, by_itself=True)

    def _draw_cell(self, line: TimeLine, index: SnapshotIndex) -> None:
        begin, end = self._cell_span()
        lock, tid = self._cell_subject()
        locks = self._lock_classes.locks(lock)
        callers = cell_callers(line, begin, end, locks, tid)
        subject = self._lock_classes.name(lock, index) if locks else "all locks"
        if tid:
            subject = index.thread_name(tid)
        self._cell.set_heads("Cursor", subject)
        self._cell.show((begin, lock, tid), cell_lines(callers, begin, end, index))

    def _cell_subject(self) -> tuple[int, int]:
        """The lock or class, and the thread, that the cell under the cursor is of; 0: all."""
        if self._offsets_of is not None:
            return self._offsets_of, 0
        current = self._lanes.current or 0
        return (0, current) if self._of_threads else (current, 0)

    def _cell_span(self) -> tuple[int, int]:
        """The begin and the end of the cell under the cursor."""
        at_ns = self._view.at_ns
        if self._offsets_of is not None and self._parts:
            second, part = at_ns // _NS * _NS, at_ns % _NS * self._parts // _NS
            # The first nanosecond that is in this part, as in waits_by_offset().
            return (
                second + part * _NS // self._parts,
                second + (part + 1) * _NS // self._parts,
            )
        window = self.window
        cell = window.cell_at(at_ns)
        return window.edge_ns(cell), window.edge_ns(cell + 1)

    @on(ItemList.Moved)
    def _moved(self, event: ItemList.Moved) -> None:
        if self._offsets_of is not None and not event.by_itself and self._parts:
            part = self._lanes.current or 0
            second = self._view.at_ns // _NS * _NS
            # The middle of the part, so that no rounding leads to its neighbour.
            self._view.at_ns = second + (2 * part + 1) * _NS // (2 * self._parts)
        self.draw()

    def action_cell(self, cells: int) -> None:
        """Move the cursor: by a cell of time, or by a second."""
        if self._offsets_of is None:
            super().action_cell(cells)
            return
        self._view.go_to(self._view.at_ns + cells * _NS)
        self.refresh_view()

    # Actions, as named in actions.py

    def action_help(self) -> None:
        """Show the keys and the notes on the heat map."""
        notes = (
            "A cell has the sum of the waits of all threads; idle waits do not count.",
            "Below ┄ there were too many waits to read: their sums are exact, from counters.",
            "Any wait is visible; the densities are shares of the largest cell in sight.",
        )
        self.show_help(notes, only_keys=True)

    def action_idle(self) -> None:
        """Show or hide rows without waits in sight."""
        self._shows_idle = not self._shows_idle
        self.draw()

    def action_rows(self) -> None:
        """A row for each lock, or for each thread."""
        if self._offsets_of is None:
            self._of_threads = not self._of_threads
        self._offsets_of = None
        self._lanes.chosen = False
        self.draw()

    def action_offsets(self) -> None:
        """Parts of a second as rows: of the lock under the cursor, of all locks, and back."""
        if self._offsets_of is None:
            current = self._lanes.current or 0
            self._offsets_of = 0 if self._of_threads else current
        elif self._offsets_of:
            self._offsets_of = 0
        else:
            self._offsets_of = None
            self._lanes.chosen = False
        self._parts = 0
        self.draw()

    def action_choose_span(self) -> None:
        """Begin a span at the cell under the cursor; the second time end the span there."""
        begin, end = self._cell_span()
        if self._begin is None:
            self._begin = begin
        else:
            first = min(self._begin, begin)
            last = max(end, self._begin + 1)
            if begin < self._begin:
                last = max(last, self._begin + (end - begin))
            span = ChosenSpan(first, last, self._lock_classes.locks(self._offsets_of or 0))
            self._spans = [*self._spans, span][-_MAX_SPANS:]
            self._begin = None
        self.draw()

    def action_span_callers(self) -> None:
        """Show the call tree of the span that was chosen last, else of what is in sight."""
        view = self._view
        span = self._spans[-1] if self._spans else ChosenSpan(view.from_ns, view.to_ns)
        self.start(partial(self._show_callers, span), "callers")

    async def _show_callers(self, span: ChosenSpan) -> None:
        (snapshot,) = await self._snapshots_of(span)
        process = snapshot.process
        counted_s = snapshot.duration_s if snapshot.session_s is not None else None
        over = f", counted over {duration(counted_s)}" if counted_s is not None else ""

        def title(width: int) -> Line:
            text = f" {process.comm} {process.pid}  callers of {span.says}{over}"
            return cut(make_line((text, "strong")), width)

        screen = CallTreeScreen(SnapshotProfile(snapshot), title, pause=lambda: None, now=self._now)
        self._show_above(screen)

    def action_open_class(self) -> None:
        """Open or close the class under the cursor; on another row show the callers."""
        current = self._lanes.current or 0
        if self._offsets_of is None and self._lock_classes.switch(current):
            self.draw()
        else:
            self.action_span_callers()

    def action_span_difference(self) -> None:
        """Show what the second span has more than the first."""
        if len(self._spans) < _MAX_SPANS:
            self.show_message("Choose two spans: m begins one, m again ends it; then d.")
            return
        self.start(partial(self._show_difference, *self._spans), "callers")

    async def _show_difference(self, before: ChosenSpan, after: ChosenSpan) -> None:
        first, second = await self._snapshots_of(before, after)
        root = await asyncio.to_thread(difference, first, second)
        title = f"B {after.says} minus A {before.says}"
        lost = first.lost_events, second.lost_events
        self._show_above(DifferenceScreen(title, root, lost))

    async def _snapshots_of(self, *spans: ChosenSpan) -> list[Snapshot]:
        """The waits of spans. The message line shows how far the reading is."""
        self._read_part = 0.0
        self._show_bar()
        bar = self.set_interval(BAR_S, self._show_bar)
        try:
            return [
                await asyncio.to_thread(
                    self._reader.read_span, span.from_ns, span.to_ns, span.locks, self._step
                )
                for span in spans
            ]
        finally:
            bar.stop()

    def _show_bar(self) -> None:
        text = line_text(make_line(*reading_bar(self._read_part))).strip()
        self.show_message(text, seconds=_LONG_S)

    def _show_above(self, screen: ListScreen) -> None:
        """Show what was read, unless the user has gone elsewhere meanwhile."""
        self.footer.clear()
        if self.app.screen is self:
            self.app.push_screen(screen)
