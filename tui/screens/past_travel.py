"""Brings the moments of the past onto a screen: one that the user goes to, or one after another."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

from textual.timer import Timer

from locktop.collector.errors import LocktopError
from locktop.collector.recording.moments import Moments
from locktop.collector.recording.requested_sections import section_at
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.past import Past
from locktop.tui.terminal.driver import Meter
from locktop.tui.views.past_alerts import NO_ALERTS, PastAlerts
from locktop.tui.views.past_flag import Position
from locktop.tui.widgets.list_screen import ListScreen

#: Seconds between two looks of the player at the clock, and of a reader at a slow terminal.
_TICK_S, _DRAIN_S = 0.1, 0.02
#: After a scan, seconds until a moment on the screen gets the names that have come since.
_NAMES_S = 2.0
#: How long the text of an alert stays in the last line.
_WHY_S = 15.0
_ENDED = "The process has ended. End shows its last snapshot."


class DrawsMoments(Protocol):
    """A screen that draws the moments."""

    def show_moment(self, index: SnapshotIndex, keeps_order: bool) -> None:
        """Draw a snapshot of the past; ``keeps_order``: rows stay where they are for a while."""

    def show_now(self) -> None:
        """Draw the newest snapshot of all."""

    def show_position(self) -> None:
        """Draw what tells the moment: the first line and the line of keys."""


class PastTravel:
    """Moves a ``Past``, reads the moment in another thread, and has it drawn."""

    def __init__(
        self,
        past: Past,
        screen: ListScreen,
        draws: DrawsMoments,
        meter: Meter,
        now: Callable[[], float],
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """Args:
        past: the position.
        screen: has the messages, the timer and the worker.
        draws: draws the moments.
        meter: tells whether the terminal has taken the output.
        now: a monotonic clock in seconds.
        wall_ns: the time, nanoseconds since 1970.
        """
        self._past = past
        self._screen = screen
        self._draws = draws
        self._meter = meter
        self._now = now
        self._wall_ns = wall_ns
        #: The time of the snapshot on the screen; None: now.
        self.drawn_ns: int | None = None
        self._is_reading = False
        self._is_outdated = False  # whether the snapshot on the screen is to be read again
        self._names_timer: Timer | None = None
        self._player: Timer | None = None
        self._ticked_at = 0.0
        self._announced_end = False
        self._wanted_section = ""

    @property
    def is_active(self) -> bool:
        """Whether the screen shows a moment of the past."""
        return self._past.is_active

    @property
    def position(self) -> Position | None:
        """The moment on the screen; None at now."""
        return self._past.position(self._wall_ns())

    def now_ns(self) -> int:
        """Return the time of now, nanoseconds since 1970."""
        return self._wall_ns()

    @property
    def reason(self) -> str:
        """The text of the alert or mark that the user jumped to; "" for none."""
        return self.position.reason if self.position is not None else ""

    def past_alerts(self) -> PastAlerts:
        """Return the alerts around the moment on the screen; none if those are damaged."""
        at_ns = self._past.time_ns
        try:
            alerts = self._past.known_alerts()
            return PastAlerts(alerts, at_ns if at_ns is not None else self.now_ns())
        except LocktopError:
            return NO_ALERTS

    def refresh(self, message: str = "", seconds: float = 6.0) -> None:
        """Show the moment that the past is at now, and a message."""
        if message:
            # The call tree may be over the screen.
            visible = self._screen.app.screen
            on = visible if isinstance(visible, ListScreen) else self._screen
            on.show_message(message, style="waiting", seconds=seconds)
        self._wind_up()
        if self._past.is_active:
            if not self._is_reading:
                self._is_reading = True
                self._screen.start(self._read, "past")
        elif self.drawn_ns is not None:
            self.drawn_ns = None
            self._draws.show_now()
        self._draws.show_position()

    async def _read(self) -> None:
        """Read and draw moments until the wanted one is on the screen.

        Another thread reads, so keys are handled meanwhile. Of several wanted moments the last one
        is read.
        """
        try:
            while (wanted := self._past.time_ns) is not None and (
                self._is_outdated or wanted != self.drawn_ns
            ):
                await self._read_one(wanted)
        finally:
            self._is_reading = False

    async def _read_one(self, time_ns: int) -> None:
        assert self._past.moments is not None
        is_same, self._is_outdated = time_ns == self.drawn_ns, False
        try:
            index = await asyncio.to_thread(
                _index_at, self._past.moments, time_ns, self._wanted_section
            )
        except Exception as error:
            # The user can go on from here: what follows may be sound.
            self.drawn_ns, self._past.is_playing = time_ns, False
            self._wind_up()
            self._screen.show_error(error, suffix=". The screen still has the moment before.")
            return
        while not self._meter.drained:
            await asyncio.sleep(_DRAIN_S)
        # In place of a moment that the memory has forgotten, the oldest one was read.
        if self._past.is_active and (self._past.is_kept or not is_same):
            self.drawn_ns = time_ns
            self._draws.show_moment(index, is_same or self._past.is_playing)

    def want_section(self, name: str, wanted: bool) -> None:
        """Have the moments with a section; if ``wanted``, also the moment on the screen."""
        self._wanted_section = name if wanted else ""
        if wanted:
            self._read_again()

    def _read_again(self) -> None:
        """Read the moment on the screen again, which may have more by now."""
        self._names_timer = None
        if self._past.is_active:
            self._is_outdated = True
            self.refresh()

    def _wind_up(self) -> None:
        """Start or stop the timer of the player."""
        if self._past.is_playing and self._player is None:
            self._ticked_at = self._now()
            self._player = self._screen.set_interval(_TICK_S, self._tick)
        elif not self._past.is_playing and self._player is not None:
            self._player.stop()
            self._player = None

    def _tick(self) -> None:
        now = self._now()
        elapsed_s, self._ticked_at = now - self._ticked_at, now
        # A reader that is behind gets no more work.
        if self._past.tick(elapsed_s) or not self._past.is_playing:
            self.refresh()

    def scan_arrived(self, ended: bool) -> None:
        """Tell once that the process has ended; draw how far back the moment is.

        The scan may know names that the moment lacks. The memory gets it after the screen.
        """
        if ended and not self._announced_end:
            self._announced_end = True
            self._screen.show_message(_ENDED, style="waiting", seconds=_WHY_S)
        if self._names_timer is None:
            self._names_timer = self._screen.set_timer(_NAMES_S, self._read_again)
        self._draws.show_position()

    # One method for each key

    def step(self, count: int) -> None:
        """Go one snapshot back or forth."""
        self.refresh(self._past.step(count))

    def jump(self, direction: int) -> None:
        """Go to the alert or mark before, or to the next."""
        try:
            said = self._past.jump(direction)
        except Exception as error:
            self._screen.show_error(error)
            return
        self.refresh(said, _WHY_S)

    def mark(self) -> None:
        """Mark the moment on the screen."""
        self._screen.show_message(self._past.mark(self._wall_ns()))

    def save(self) -> None:
        """Save the memory as a recording."""
        # These modules take a part of the start of the screen.
        from locktop.collector.recording.history import History
        from locktop.collector.recording.memory_file import save_recording

        moments = self._past.moments
        if isinstance(moments, History):
            self._screen.save(partial(save_recording, moments))
        elif self._past.is_replay:
            self._screen.show_message("This is a recording already.")
        else:
            self._screen.show_message("Nothing is kept: --history 0 says so.")

    def go_to(self, text: str) -> None:
        """Go to a time in words, as ``Past.go_to()`` takes it."""
        if text.strip():
            self.refresh(self._past.go_to(text))

    def go_to_time(self, time_ns: int) -> None:
        """Go to a moment, nanoseconds since 1970."""
        self.refresh(self._past.go_to_time(time_ns))

    def to_oldest(self) -> None:
        """Go to the oldest moment."""
        self.refresh(self._past.to_oldest())

    def to_newest(self) -> None:
        """Go to now, in a replay to the last moment."""
        self.refresh(self._past.to_newest())

    def play_or_pause(self) -> None:
        """Play from the moment on the screen, or pause."""
        self.refresh(self._past.play_or_pause())

    def play_faster(self, steps: int) -> None:
        """Play that many steps faster."""
        self._past.faster(steps)
        if not self._past.is_playing:
            self._screen.show_message(f"Speed {self._past.speed:g}x; p plays.")
        self._draws.show_position()


def _index_at(moments: Moments, time_ns: int, section: str) -> SnapshotIndex:
    """Read a snapshot, and compute there what takes longest of its index."""
    index = SnapshotIndex(
        section_at(moments, time_ns, section) if section else moments.snapshot_at(time_ns)
    )
    _ = index.groups, index.class_of
    return index
