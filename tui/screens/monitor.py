"""The monitor screen: its panels, its keys, and when it is drawn."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container

from locktop.collector.recording.moments import Moments
from locktop.collector.render.rendered_files import save_snapshot
from locktop.collector.render.words.earlier_holder import recall
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.bindings import bindings
from locktop.tui.extension import monitor_keys
from locktop.tui.feed import PollerFeed, SnapshotFeed
from locktop.tui.frame_pacer import Pacer
from locktop.tui.new_notes import NewNotes
from locktop.tui.past import Past
from locktop.tui.screen_actions import MONITOR, PAST_FOOTER
from locktop.tui.screen_start import ScreenStart
from locktop.tui.screens.activity_reader import ActivityReader
from locktop.tui.screens.details_target import Followed
from locktop.tui.screens.level_control import LevelControl
from locktop.tui.screens.list_choices import ListChoices
from locktop.tui.screens.monitor_body import MonitorBody, choose_shape, compose_body
from locktop.tui.screens.monitor_texts import MonitorTexts
from locktop.tui.screens.newest_snapshots import NewestSnapshots
from locktop.tui.screens.past_travel import PastTravel
from locktop.tui.screens.pressure_reader import PressureReader
from locktop.tui.screens.screen_above import ScreenAbove
from locktop.tui.screens.session_control import SessionControl
from locktop.tui.screens.source_reader import SourceReader
from locktop.tui.screens.view_host import Below
from locktop.tui.terminal.driver import Meter
from locktop.tui.typed_filter import TypedFilter
from locktop.tui.views.banner import no_deadlock, top_lines
from locktop.tui.views.headline import most_waited_now, waiting_line
from locktop.tui.views.lock_list import HOLDER_NOW
from locktop.tui.views.status import notes, state_flags, status_line
from locktop.tui.views.styled_line import Line
from locktop.tui.widgets.details import Details
from locktop.tui.widgets.filter import MomentEntry
from locktop.tui.widgets.fixed_lines import FixedLines
from locktop.tui.widgets.item_list import ItemList
from locktop.tui.widgets.list_screen import ListScreen
from locktop.tui.widgets.scroll_panel import ScrollPanel
from locktop.tui.widgets.view_bar import ViewBar

#: How long a note stays in the last line.
_NOTES_S = 15.0


class MonitorScreen(ListScreen):
    """Draws the newest snapshot, at a pace that the terminal can follow, or one of the past."""

    SCREEN = MONITOR
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(*MONITOR.actions)]
    view_name = "locks"

    def __init__(
        self,
        feed: SnapshotFeed,
        meter: Meter,
        pacer: Pacer,
        now: Callable[[], float] = time.monotonic,
        asks_for_level: bool = True,
        moments: Moments | None = None,
        is_replay: bool = False,
        start: ScreenStart | None = None,
    ) -> None:
        """Make the screen.

        Args:
            feed: where snapshots come from.
            meter: tells whether the terminal has taken the output.
            pacer: decides which snapshots are drawn.
            now: a monotonic clock in seconds.
            asks_for_level: whether the user must confirm a new level.
            moments: the memory of the process, or the recording; None: nothing is kept.
            is_replay: whether there is a recording and no process.
            start: the order, the filter and the columns at first.
        """
        self.past = Past(moments, is_replay)
        self.travel = PastTravel(self.past, self, self, meter, now)
        super().__init__(self.travel)
        self.pressure = PressureReader(moments, self, self._draw_details)
        self.activity = ActivityReader(moments, self, self._draw)
        self._feed = feed
        self._newest = NewestSnapshots(feed, pacer, meter, self)
        self._now = now
        slot = self._newest.slot
        self._level = LevelControl(feed, slot, self, asks=asks_for_level)
        self._session = SessionControl(feed, slot, self, is_replay=is_replay)
        above = self._above_closed
        below = Below(self._status_line, self.flags, self.action_pause, self.travel, above)
        self.above = ScreenAbove(self, feed, slot, self.past, below, now)
        self._time_entry = MomentEntry(self.active_list, self.travel.go_to)
        self._index: SnapshotIndex | None = None
        self._paused, self._show_idle, self._reads_names = False, False, True
        self.typed, self._new_notes = TypedFilter(), NewNotes()
        self._sources = SourceReader(self, self._draw_details)
        self.begins_with: Callable[[], None] | None = None  # what to show at the start
        self._start = start or ScreenStart()
        self._curtain = ExitStack()

    def compose(self) -> ComposeResult:
        """The widgets from the top."""
        # Before there are widgets, for each change of a class computes the styles of all.
        self.add_class("on-locks")
        choose_shape(self, self.app.size)
        yield from self.compose_top()
        yield from compose_body()
        with Container(id="footer"):
            yield self.footer
            yield from self.compose_entries()
            yield self._time_entry

    def on_mount(self) -> None:
        """Find the widgets and start the feed."""
        self._headline = self.query_one("#headline", FixedLines)
        self._view_bar = self.query_one(ViewBar)
        self._body = MonitorBody(self, self._feed)
        self.texts = MonitorTexts(self, self._body, lambda: self._index, self.above.annotate)
        self._body.locks.pressure = self.pressure.phases
        if wrong := self._body.begin(self._start):
            self.show_message(*wrong, style="waiting", seconds=_NOTES_S)
        self.filter.value = self._start.filter
        self.choices = ListChoices(self, self._body, self._start.views, self.go)
        self._body.locks.widget.focus()
        self._curtain.enter_context(self.app.batch_update())
        self._newest.start(self._show_empty)
        self.travel.refresh()

    def _show_empty(self, seconds: int) -> bool:
        """Open the screen without a snapshot, and say for how long; return whether it has none."""
        self._curtain.close()
        if is_empty := self._index is None:
            line = waiting_line(f"for the first snapshot, {seconds} s", self.size.width)
            self._headline.show((line,))
        return is_empty

    def on_unmount(self) -> None:
        """Stop the feed."""
        self._curtain.close()
        self._feed.stop()

    @property
    def is_current(self) -> bool:
        """Whether the screen is visible.

        Textual would paint a screen below the call tree whole with each snapshot.
        """
        return not self.above.is_open and super().is_current

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return (newest := self._newest.slot.newest) is not None and newest.ended

    @property
    def process_name(self) -> str:
        """Name and pid of the process."""
        process = self._index.snapshot.process if self._index is not None else None
        return f"{process.comm} {process.pid}" if process is not None else "the program"

    # Snapshots

    @on(NewestSnapshots.Arrived)
    def _take(self) -> None:
        self.above.tick()
        if self.past.is_active:
            self.travel.scan_arrived(self.has_ended)
        elif not self._paused and self._newest.may_draw(is_first=self._index is None):
            self._take_newest()

    def _take_newest(self) -> None:
        newest = self._newest.slot.newest
        if newest is None or (self._index is not None and newest is self._index.snapshot):
            return
        # Of another process the screen keeps no row where it was: a listener may get the next one.
        is_other = bool(self._index and self._index.snapshot.process.pid != newest.process.pid)
        # By the names of functions some waits turn out to be in contention, or idle.
        if isinstance(self._feed, PollerFeed):
            self._sources.follow(newest.process)
        index, last = recall(SnapshotIndex(newest, self._sources.line), self._index), self._index
        is_calm = last is not None and most_waited_now(last) is None
        is_settling = last is not None and last.snapshot.names_left > 0
        if is_other or is_settling or (is_calm and most_waited_now(index) is not None):
            self._body.sort_now()
        self._show_index(index)

    def show_moment(self, index: SnapshotIndex, keeps_order: bool) -> None:
        index.source_line = self._sources.line
        if not keeps_order:
            self._body.sort_now()
        self._show_index(index)

    def show_now(self) -> None:
        self._body.sort_now()
        self._take_newest()

    def show_position(self) -> None:
        self._show_keys()
        self._draw_status()

    def _draw_status(self) -> None:
        if self.above.screen is not None:
            self.above.screen.show_flags()
            return
        self._view_bar.set_view(self._body.view)
        self.status_row.set_flags(self.flags())
        self.status_row.show((self._status_line(self.status_row.room(self.size.width)),))

    def _status_line(self, width: int) -> Line:
        if self._index is None:
            return ()
        snapshot, pace, past = self._index.snapshot, self._newest.pace, self.past
        return status_line(snapshot, pace, width, past.is_active, past.alerts)

    def flags(self) -> Line:
        """The state of the screen for the second line: past, paused, ended, or what is wrong."""
        return state_flags(self._index, self._paused, self.travel.position)

    def _show_keys(self) -> None:
        self.show_keys(PAST_FOOTER if self.past.is_active else None, self.past.key_labels)

    def _show_index(self, index: SnapshotIndex) -> None:
        self._index = index
        self.pressure.show(self.travel.drawn_ns)
        self.activity.show(index.snapshot, self.travel.drawn_ns or self.travel.now_ns())
        if new := self._new_notes.select(index.snapshot.notes):
            self.show_message(*new, style="waiting", seconds=_NOTES_S)
        self._draw()
        if self.begins_with is not None:
            self.begins_with()
            self.begins_with = None
        self._curtain.close()

    def _draw(self) -> None:
        """Update every panel; each sends only the rows that changed."""
        index = self._index
        if index is None:
            return
        if self.above.is_open:
            self.above.show_snapshot(index.snapshot)
            return
        self._draw_status()
        self._body.is_live = not (self._paused or self.past.is_active)
        stale = "" if self.past.is_active else self._feed.stale
        past, reason = self.travel.past_alerts(), self.travel.reason
        self._headline.show(top_lines(index, stale, self.size, past, reason))
        self._body.draw_lists(index, self.typed, self._show_idle, self._now())
        self._draw_overview()
        self._draw_details()

    def _draw_after_layout(self) -> None:
        """Update every panel once it has its new size, but the first lines with the layout."""
        self._draw_status()
        self.call_after_refresh(self._draw)

    def _draw_overview(self) -> None:
        if self._index is not None and self._body.overview.display:
            alerts, is_now = self.past.known_alerts(), not self.past.is_active
            self._body.draw_overview(self._index, self.activity, alerts, is_now)

    def _draw_details(self) -> None:
        if self._index is not None:
            self._follow(self._body.draw_details(self._index, self.activity))
        self._sources.read_wanted()

    def _follow(self, details: Followed) -> None:
        """Have each scan measure more of what the details are about, and of the holders in sight.

        Such a measurement costs something, so the scans make it only where the screen shows it.
        """
        if self.past.is_active:
            return  # the scans go on with what they measured
        rows, worst = self._body.locks, most_waited_now(self._index) if self._index else None
        in_rows = rows.widget.display and rows.has_column(HOLDER_NOW)
        locks = {details.lock, *(rows.widget.visible_ids if in_rows else ())}
        self._feed.follow(details.thread, locks | ({worst.id} if worst else set()))

    # Events

    def on_resize(self, event: events.Resize) -> None:
        """Choose the layout for the new size."""
        choose_shape(self, event.size)
        self.call_after_refresh(self._redraw)

    @on(Details.Outgrown)
    def _redraw(self) -> None:
        self._show_keys()
        self._draw()

    @on(ItemList.Moved)
    def _moved(self, event: ItemList.Moved) -> None:
        panel = self._body.panel()
        if event.source is panel.widget and not (event.by_itself and self._body.keeps_target):
            self._body.target.take(panel.subject)
            self._draw_details()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Let the details follow the panel with the focus."""
        widget = event.widget
        if isinstance(widget, ItemList):
            self._body.use(widget)
            if self._index is not None and (widget.chosen or not self._body.target.stays):
                self._body.target.clear()
        if isinstance(widget, ScrollPanel):
            self.call_after_refresh(self._draw)

    def active_list(self) -> ItemList:
        return self._body.panel().widget

    def focused_panel(self) -> ScrollPanel:
        return self._body.focused()

    def apply_filter(self) -> None:
        self.typed.type(self.filter_words)
        self._body.sort_now()
        self._draw()

    # Actions, as named in actions.py

    def action_help(self) -> None:
        """Show the keys, the columns and the notes."""
        self.show_help(notes(self._index.snapshot) if self._index is not None else ())

    def action_choose(self, what: str) -> None:
        """Open the dialogue for ``columns``, or for saved ``views``."""
        self.choices.open(what)

    def action_panel(self, step: int) -> None:
        """Go to the next panel, or the one before."""
        self.call_after_refresh(self._body.next_panel(step).focus)

    def go(self, view: str) -> None:
        """Go to a view."""
        if view == "callers":
            self.action_callers()
        elif view == "timeline":
            self.action_timeline()
        elif view == "history":
            self.action_heat_map()
        elif view in monitor_keys():
            self.action_view(view)
        else:
            self.call_after_refresh(self._body.show(view).focus)
            self._draw_after_layout()

    def action_details(self) -> None:
        """Go to the details; there from a lock to its holder, and from a thread to its lock."""
        if end := self._body.enter_details(self._index):
            self.show_message(end)
        self._draw_after_layout()

    def action_zoom(self) -> None:
        """Give the details the whole screen, or a part of it again."""
        self._body.zoom()
        self._draw_after_layout()

    def leave_part(self) -> bool:
        """Leave the details, or the last step of a walk there; leave the overview."""
        if self._body.view == "overview":
            self.go("locks")
            return True
        left = self._body.leave_details()
        self._draw_after_layout()
        return left

    def leave(self) -> None:
        """Stay: there is no screen below."""

    def action_deadlock(self) -> None:
        """Show the deadlock with all its stacks; there, or without one, the potential ones."""
        if self._index is None:
            return
        if not self._body.show_deadlock(self._index):
            self.show_message(no_deadlock(self._index))
        self._draw_after_layout()

    def action_sort(self) -> None:
        """Sort the list in use by the next column."""
        self._arrange(self._body.panel().next_sort_key)

    def action_reverse(self) -> None:
        """Reverse the order of the list in use."""
        self._arrange(self._body.panel().reverse)

    def _arrange(self, change: Callable[[], None]) -> None:
        if not self._body.has_columns:
            return self.say_without_columns()
        change()
        self._draw()

    def action_filter(self) -> None:
        """Open the filter, with the lists visible."""
        self.remove_class("zoomed", "overview")
        super().action_filter()

    def action_open(self) -> None:
        """Open a group of rows, or go into it; open the lines with ▸ in the details."""
        self._set_open(True)

    def action_close(self) -> None:
        """Close a group of rows, or go out of it; close the lines with ▾ in the details."""
        self._set_open(False)

    def _set_open(self, is_open: bool) -> None:
        if self._index is not None:
            self._body.set_open(self._index, is_open)
            self._draw()

    def action_idle(self) -> None:
        """Show or hide rows that only wait for work."""
        self._show_idle = not self._show_idle
        self.apply_filter()

    def action_pause(self) -> None:
        """Hold the screen still; the scans go on. In the past: play or pause."""
        if self.past.is_active:
            return self.travel.play_or_pause()
        self._paused = not self._paused
        if not self._paused:
            self._take_newest()
        self._draw()

    def action_save(self, form: str) -> None:
        """Save the snapshot that is on the screen."""
        if self._index is not None and self._index.snapshot.process.pid:
            self.save(partial(save_snapshot, self.above.annotate(self._index.snapshot), form))
        else:
            self.show_message("Not saved: there is no snapshot yet")

    def action_callers(self, weight: str | None = None, idle: bool = False) -> None:
        """Show the call tree, by this weight, and with idle waits or without."""
        if self._index is not None:
            self.above.open_call_tree(self._index.snapshot, weight, idle)

    def action_view(self, name: str) -> None:
        """Show another screen: see ScreenAbove.open_view()."""
        if self._index is not None:
            self.above.open_view(name, self._index.snapshot, self._body.panel().lock(self._index))

    def action_timeline(self) -> None:
        """Show the time line."""
        self.above.open_timeline()

    def action_heat_map(self) -> None:
        """Show the heat map of waiting."""
        self.above.open_heat_map()

    def _above_closed(self, chosen_ns: int | None, view: str) -> None:
        self.call_after_refresh(self._draw)
        if chosen_ns is not None:
            self.travel.go_to_time(chosen_ns)
        if view:
            self.go(view)

    def action_choose_time(self) -> None:
        """Ask for a time to go to."""
        self._time_entry.open()

    def action_mark(self) -> None:
        """Mark the moment on the screen."""
        self.travel.mark()

    def action_names(self) -> None:
        """Stop reading names, or go on."""
        self._reads_names = not self._reads_names
        self._feed.set_reading_names(self._reads_names)
        stopped = "No more names are read: addresses stand in their place. The same key goes on."
        self.show_message("Names are read again." if self._reads_names else stopped)

    def action_save_past(self) -> None:
        """Save the memory as a recording."""
        self.travel.save()

    def action_level(self) -> None:
        """Open the dialogue for the level of the library."""
        self._level.open()

    def action_session(self, word: str) -> None:
        """Begin the session anew (``start``), or end it (``stop``)."""
        self._session.begin_or_end(word == "start")

    def action_rate(self, steps: int) -> None:
        """Change the rate of snapshots. In the past: the speed of the player."""
        if self.past.is_active:
            self.travel.play_faster(steps)
            return
        self._newest.change_rate(steps)
        self._draw()
