"""The time line: what each thread did when, and who woke whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.binding import BindingType

from locktop.collector.analysis.timeline import event_after, event_before, events, wait_in
from locktop.collector.model import Flow, Lane, LaneState, TimedWait, TimeLine, Window
from locktop.collector.render.text.timeline import waited_by_lock
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.timeline import letters_of
from locktop.collector.render.words.wait_holders import holder_sentences
from locktop.tui.bindings import bindings
from locktop.tui.screen_actions import TIMELINE
from locktop.tui.screens.time_screen import OpenedPast, TimeScreen
from locktop.tui.views.styled_line import line_text
from locktop.tui.views.timeline import (
    COUNTED,
    SIGNS,
    LaneView,
    arrow_marks,
    axis_line,
    cell_line,
    lane_line,
    legend_line,
    wait_lines,
)
from locktop.tui.widgets.item_list import ItemList

#: Letters of the legend: more do not fit.
_MAX_LETTERS = 26
_MAX_WOKEN = 3


class TimelineScreen(TimeScreen):
    """Lanes of threads over a span of time."""

    SCREEN = TIMELINE
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(*TIMELINE.actions)]
    WHAT = "time line"

    def __init__(self, past: OpenedPast) -> None:
        """Make the screen; see TimeScreen."""
        super().__init__(past)
        self._shows_letters = False
        self._shows_idle = False
        self._by_tid: dict[int, Lane] = {}
        #: The cells of this time line and window, by tid.
        self._cells: dict[int, list[dict[tuple[LaneState, int], int]]] = {}
        self._cells_line: TimeLine | None = None
        self._cells_window: Window | None = None
        self._letters: tuple[TimeLine, dict[int, str]] | None = None

    def action_heat_map(self) -> None:
        """Show the same time as a heat map."""
        self.go_to_other()

    # Drawing

    def draw_body(self, line: TimeLine, index: SnapshotIndex, window: Window) -> None:
        letters = self._letters_of(line)
        self.headline_lines.show((legend_line(line, index, letters, self.size.width),))
        visible = [lane for lane in line.lanes if self._is_visible(lane, index)]
        self._by_tid = {lane.tid: lane for lane in visible}
        order = list(self._by_tid)
        current = self._lanes.current if self._lanes.current in self._by_tid else None
        lane = self._by_tid.get(current or (order[0] if order else 0))
        wait = self._wait(lane, window) if lane is not None else None
        woken_by, woke = self._flows(line, wait)
        marks = arrow_marks(order, *_arrow(wait, woken_by, woke))
        if self._cells_line is not line or self._cells_window != window:
            self._cells_line, self._cells_window, self._cells = line, window, {}
        view = LaneView(window, letters, self._shows_letters, marks, self._cells)
        cursor = window.cell_at(self._view.at_ns)
        self._lanes.cell = cursor
        axis = axis_line(window, cursor, line.notables, line.counted)
        self._lanes.set_heads("Threads", line_text(SIGNS), axis)
        by_tid = self._by_tid
        self._lanes.show(order, lambda tid: lane_line(by_tid[tid], index.thread_name(tid), view))
        self._draw_cell(lane, wait, woken_by, woke, index, window)

    def _letters_of(self, line: TimeLine) -> dict[int, str]:
        if self._letters is None or self._letters[0] is not line:
            locks = [lock for lock, _ in waited_by_lock(line)]
            self._letters = line, letters_of(locks[:_MAX_LETTERS])
        return self._letters[1]

    def _is_visible(self, lane: Lane, index: SnapshotIndex) -> bool:
        if (
            self.filter_words
            and self.filter_words.lower() not in index.thread_name(lane.tid).lower()
        ):
            return False
        active = (LaneState.WAITING, LaneState.HOLDING)
        return (
            self._shows_idle
            or any(span.state in active for span in lane.spans)
            or any(state in active for span in lane.counted for state, _ in span.sums)
        )

    def _draw_cell(
        self,
        lane: Lane | None,
        wait: TimedWait | None,
        woken_by: Flow | None,
        woke: list[Flow],
        index: SnapshotIndex,
        window: Window,
    ) -> None:
        if lane is None:
            self._cell.set_heads("Cursor", "")
            self._cell.show(None, [((" no thread waited or held a lock; i shows all", "label"),)])
            return
        self._cell.set_heads("Cursor", index.thread_name(lane.tid))
        lines = [cell_line(lane, self._view, window, index)]
        holders = holder_sentences(wait, self._line, index) if wait and self._line else ()
        is_counted = any(s.from_ns <= self._view.at_ns <= s.to_ns for s in lane.counted)
        lines += wait_lines(wait, holders, woken_by, woke, index, is_counted=is_counted)
        self._cell.show((lane.tid, self._view.at_ns), lines)

    def _wait(self, lane: Lane, window: Window) -> TimedWait | None:
        """The wait at the cursor, else the longest in its cell, else the one of the hold there."""
        at_ns = self._view.at_ns
        best: TimedWait | None = None
        for wait in lane.waits:
            record = wait.record
            if record.began_ns > at_ns:
                break
            if at_ns <= record.got_ns and (best is None or best.idle or not wait.idle):
                best = wait
        if best is not None and not best.idle:
            return best
        cell = window.cell_at(at_ns)
        in_cell = wait_in(lane.waits, window.edge_ns(cell), window.edge_ns(cell + 1))
        if in_cell is not None and not in_cell.idle:
            return in_cell
        held = [wait for wait in lane.waits if wait.record.got_ns <= at_ns <= wait.record.end_ns]
        return held[-1] if held else best or in_cell

    def _flows(self, line: TimeLine, wait: TimedWait | None) -> tuple[Flow | None, list[Flow]]:
        """The hand-over that ended the wait, and those by the release of its thread."""
        if wait is None:
            return None, []
        record = wait.record
        woken_by, woke = None, []
        for flow in line.flows:
            if flow.lock != record.lock:
                continue
            if flow.to_tid == record.tid and flow.woken_ns == record.got_ns:
                woken_by = flow
            if flow.from_tid == record.tid and flow.released_ns == record.end_ns:
                woke.append(flow)
        return woken_by, woke[:_MAX_WOKEN]

    @on(ItemList.Moved)
    def _moved(self, _: ItemList.Moved) -> None:
        self.draw()

    # Actions, as named in actions.py

    def action_help(self) -> None:
        """Show the keys and the notes on the time line."""
        self.show_help(_notes(self._line), only_keys=True)

    def action_idle(self) -> None:
        """Show or hide threads that neither waited nor held a lock."""
        self._shows_idle = not self._shows_idle
        self.draw()

    def action_letters(self) -> None:
        """Show the letters of the locks, or the shares of the time."""
        self._shows_letters = not self._shows_letters
        self.draw()

    def action_event(self, direction: int) -> None:
        """Go to the next begin or end of a wait of this thread, or to the one before."""
        lane = self._lane()
        if lane is None:
            return
        all_events = events(lane.waits)
        at_ns = self._view.at_ns
        event = event_after(all_events, at_ns) if direction > 0 else event_before(all_events, at_ns)
        if event is None:
            where = "after" if direction > 0 else "before"
            is_counted = self._line is not None and bool(self._line.counted)
            said = f"No single wait is known {where} this: below {COUNTED} are sums; + zooms in."
            self.show_message(said if is_counted else f"No wait {where} this.")
            return
        self._view.go_to(event.time_ns)
        self.refresh_view()

    def action_woken_by(self) -> None:
        """Go to the release that ended the wait."""
        wait, flow, _ = self._here()
        if flow is not None:
            released = flow.released_ns if flow.released_ns is not None else flow.woken_ns
            self._go(flow.from_tid, released)
        elif wait is not None and wait.record.holder and not wait.idle:
            self._go(wait.record.holder, self._view.at_ns)
        else:
            self.show_message("Nobody is known who ended a wait here; n goes to the next wait.")

    def action_woke(self) -> None:
        """Go to the thread that got the lock when this one released it."""
        _, _, flows = self._here()
        if not flows:
            self.show_message("No thread is known that got the lock from here.")
            return
        self._go(flows[0].to_tid, flows[0].woken_ns)

    def _go(self, tid: int, time_ns: int) -> None:
        if tid not in self._by_tid:
            self._shows_idle = True
            self.draw()
        self._view.go_to(time_ns)
        if not self._lanes.choose(tid):
            self.show_message("That thread is not on this time line.")
        self.refresh_view()

    def _lane(self) -> Lane | None:
        return self._by_tid.get(self._lanes.current or 0)

    def _here(self) -> tuple[TimedWait | None, Flow | None, list[Flow]]:
        """The wait under the cursor, and its hand-overs."""
        lane = self._lane()
        if lane is None or self._line is None:
            return None, None, []
        wait = self._wait(lane, self.window)
        return wait, *self._flows(self._line, wait)

    def action_notable(self, direction: int) -> None:
        """Go to the next alert or mark, or to the one before."""
        notables = self._reader.notables()
        at_ns = self._view.at_ns
        after = [notable for notable in notables if notable.time_ns > at_ns]
        before = [notable for notable in notables if notable.time_ns < at_ns]
        chosen = (after[:1] if direction > 0 else before[-1:]) or None
        if chosen is None:
            self.show_message(f"No alert or mark {'after' if direction > 0 else 'before'} this.")
            return
        kind, text = chosen[0].kind, chosen[0].text
        said = text if text.startswith(kind) else f"{kind}: {text}"
        self.show_message(said, style="waiting", seconds=15.0)
        self._view.go_to(chosen[0].time_ns)
        self.refresh_view()

    def action_to_moment(self) -> None:
        """Show the moment under the cursor on the monitor."""
        self.chosen_ns = self._view.at_ns
        self.dismiss()


def _arrow(wait: TimedWait | None, woken_by: Flow | None, woke: Sequence[Flow]) -> tuple[int, int]:
    """Return from which thread an arrow leads to which one; twice 0 for none."""
    flow = woken_by or (woke[0] if woke else None)
    if flow is not None:
        return flow.from_tid, flow.to_tid
    if wait is not None and wait.record.holder and not wait.idle:
        return wait.record.holder, wait.record.tid
    return 0, 0


def _notes(line: TimeLine | None) -> tuple[str, ...]:
    notes = [
        "What is shorter than a cell is summed in its cell, never dropped.",
        "Any wait for a lock is visible: a cell with one shows ▁ at least.",
        "Runs and sleeps are known from the snapshots alone.",
    ]
    if line is not None and line.counted:
        notes.append(
            "Below ┄ there were too many waits to read: their sums are exact, from counters."
        )
    if line is not None and line.is_sampled:
        notes.append("All waits are estimates: each is as exact as the snapshots lie close.")
    if line is not None and line.snapshot.level == "contended":
        notes.append("At level contended a hold without a wait has no record; see --level blocks.")
    return tuple(notes)
