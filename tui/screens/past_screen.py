"""The keys of the past: a screen that shows now, or a moment of a memory or a recording."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial

from textual import work
from textual.app import ComposeResult
from textual.containers import Container
from textual.timer import Timer

from locktop.collector.errors import LocktopError
from locktop.collector.format.snapshot_index import SnapshotIndex
from locktop.collector.recording.history import History
from locktop.collector.recording.memory_file import save_recording
from locktop.collector.recording.moments import Moments
from locktop.tui.bindings import footer_line
from locktop.tui.keymap import FOOTER, PAST_FOOTER
from locktop.tui.past import Past
from locktop.tui.terminal.driver import Meter
from locktop.tui.views.past_flag import Position
from locktop.tui.widgets.filter import MomentEntry
from locktop.tui.widgets.list_screen import ListScreen

#: Seconds between two looks of the player at the clock, and of a reader at a slow terminal.
_TICK_S, _DRAIN_S = 0.1, 0.02
#: How long the text of an alert stays in the last line.
_WHY_S = 15.0


class PastScreen(ListScreen):
    """Handles the keys of the past; a subclass draws the snapshots."""

    def __init__(
        self,
        moments: Moments | None,
        meter: Meter,
        now: Callable[[], float],
        *,
        is_replay: bool = False,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """Make the screen.

        Args:
            moments: the memory or the recording; None: nothing is kept.
            meter: tells whether the terminal has taken the output.
            now: a monotonic clock in seconds.
            is_replay: whether there is no live process.
            wall_ns: the time, nanoseconds since 1970.
        """
        super().__init__()
        self.past = Past(moments, is_replay)
        self._meter = meter
        self._now = now
        self._wall_ns = wall_ns
        self._time_entry = MomentEntry(self.active_list, self._time_chosen)
        #: The time of the snapshot on the screen; None: now.
        self.drawn_ns: int | None = None
        self._is_reading = False
        self._player: Timer | None = None
        self._ticked_at = 0.0

    def compose_footer(self) -> ComposeResult:
        """The footer, the filter and the time in its place."""
        with Container(id="footer"):
            yield self.footer
            yield self.filter
            yield self._time_entry

    @property
    def position(self) -> Position | None:
        """The moment on the screen; None at now."""
        return self.past.position(self._wall_ns())

    @property
    def footer_actions(self) -> Sequence[str]:
        """The actions of the line of keys."""
        return PAST_FOOTER if self.past.is_active else FOOTER

    def show_moment(self, index: SnapshotIndex, keeps_order: bool) -> None:
        """Draw a snapshot of the past; ``keeps_order``: rows stay where they are for a while."""
        raise NotImplementedError

    def show_now(self) -> None:
        """Draw the newest snapshot of all."""
        raise NotImplementedError

    def show_position(self) -> None:
        """Draw the first line again."""
        raise NotImplementedError

    # Moving

    def _moved_in_time(self, message: str = "", seconds: float = 6.0) -> None:
        """Show the moment that the past is at now."""
        if message:
            # The call tree may be over this screen.
            visible = self.app.screen
            on = visible if isinstance(visible, ListScreen) else self
            on.show_message(message, style="waiting", seconds=seconds)
        self._wind_up()
        if self.past.is_active:
            if not self._is_reading:
                self._is_reading = True
                self._read()
        elif self.drawn_ns is not None:
            self.drawn_ns = None
            self.show_now()
        self.footer.set_keys(footer_line(self.size.width, self.footer_actions))
        self.show_position()

    @work(group="past")
    async def _read(self) -> None:
        """Read and draw moments until the wanted one is on the screen.

        Another thread reads, so keys are handled meanwhile. Of several wanted moments the last one
        is read.
        """
        try:
            while (wanted := self.past.time_ns) not in (None, self.drawn_ns):
                assert wanted is not None
                await self._read_one(wanted)
        finally:
            self._is_reading = False

    async def _read_one(self, time_ns: int) -> None:
        assert self.past.moments is not None
        try:
            index = await asyncio.to_thread(_index_at, self.past.moments, time_ns)
        except LocktopError as error:
            # The user can go on from here: what follows may be sound.
            self.drawn_ns, self.past.is_playing = time_ns, False
            said = f"{error}. The screen still has the moment before."
            self.show_message(said, style="stuck", seconds=_WHY_S)
            return
        while not self._meter.drained:
            await asyncio.sleep(_DRAIN_S)
        if self.past.is_active:
            self.drawn_ns = time_ns
            self.show_moment(index, self.past.is_playing)

    def _wind_up(self) -> None:
        """Start or stop the timer of the player."""
        if self.past.is_playing and self._player is None:
            self._ticked_at = self._now()
            self._player = self.set_interval(_TICK_S, self._tick)
        elif not self.past.is_playing and self._player is not None:
            self._player.stop()
            self._player = None

    def _tick(self) -> None:
        now = self._now()
        elapsed_s, self._ticked_at = now - self._ticked_at, now
        # A reader that is behind gets no more work.
        if self.past.tick(elapsed_s) or not self.past.is_playing:
            self._moved_in_time()

    # Actions, as named in actions.py

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """In an entry the keys of the entries are letters."""
        is_open = self.filter.is_open or self._time_entry.is_open
        return action not in ("filter", "choose_time") or not is_open

    def action_step(self, count: int) -> None:
        """Go one snapshot back or forth."""
        self._moved_in_time(self.past.step(count))

    def action_jump(self, direction: int) -> None:
        """Go to the alert or mark before, or to the next."""
        try:
            said = self.past.jump(direction)
        except LocktopError as error:
            said = str(error)
        self._moved_in_time(said, _WHY_S)

    def action_mark(self) -> None:
        """Mark the moment on the screen."""
        self.show_message(self.past.mark(self._wall_ns()))

    def action_save_past(self) -> None:
        """Save the memory as a recording."""
        moments = self.past.moments
        if isinstance(moments, History):
            self.save(partial(save_recording, moments))
        elif self.past.is_replay:
            self.show_message("This is a recording already.")
        else:
            self.show_message("Nothing is kept: --history 0 says so.")

    def action_choose_time(self) -> None:
        """Ask for a time to go to."""
        self._time_entry.open()

    def _time_chosen(self, text: str) -> None:
        if text.strip():
            self._moved_in_time(self.past.go_to(text))

    def go_to_time(self, time_ns: int) -> None:
        """Go to a moment, nanoseconds since 1970."""
        self._moved_in_time(self.past.go_to_time(time_ns))

    def action_oldest(self) -> None:
        """Go to the first line; in the past to the oldest moment."""
        if self.past.is_active:
            self._moved_in_time(self.past.to_oldest())
        else:
            self.action_start()

    def action_newest(self) -> None:
        """Go to the last line; in the past to now, in a replay to the last moment."""
        if self.past.is_active:
            self._moved_in_time(self.past.to_newest())
        else:
            self.action_end()

    def play_or_pause(self) -> None:
        """Play from the moment on the screen, or pause."""
        self._moved_in_time(self.past.play_or_pause())

    def play_faster(self, steps: int) -> None:
        """Play that many steps faster."""
        self.past.faster(steps)
        if not self.past.is_playing:
            self.show_message(f"Speed {self.past.speed:g}x; p plays.")
        self.show_position()


def _index_at(moments: Moments, time_ns: int) -> SnapshotIndex:
    """Read a snapshot, and compute there what takes longest of its index."""
    index = SnapshotIndex(moments.at(time_ns))
    _ = index.groups, index.class_of
    return index
