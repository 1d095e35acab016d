"""Takes the snapshots of a feed, and tells when the screen may draw the newest one."""

from __future__ import annotations

import time
from collections.abc import Callable

from textual.message import Message
from textual.screen import Screen

from locktop.collector.model import Snapshot
from locktop.tui.feed import Slot, SnapshotFeed
from locktop.tui.frame_pacer import Pacer
from locktop.tui.terminal.driver import Meter
from locktop.tui.views.status import Pace

#: The empty screen costs as many bytes as a full one, so it appears only after this time.
_EMPTY_AFTER_S = 0.3
_TICK_S = 1.0


class NewestSnapshots:
    """Runs the feed at a rate that the terminal can follow."""

    class Arrived(Message):
        """A new snapshot is in the slot."""

        def can_replace(self, message: Message) -> bool:
            """One message is enough: the slot holds only the newest snapshot."""
            return isinstance(message, NewestSnapshots.Arrived)

    def __init__(
        self, feed: SnapshotFeed, pacer: Pacer, meter: Meter, screen: Screen[None]
    ) -> None:
        """Args:
        feed: where snapshots come from.
        pacer: decides which snapshots are drawn.
        meter: tells whether the terminal has taken the output.
        screen: gets the message ``Arrived``.
        """
        self._feed = feed
        self._pacer = pacer
        self._meter = meter
        self._screen = screen
        self.slot = Slot()

    @property
    def pace(self) -> Pace:
        """How often the screen is drawn."""
        return self._pacer.pace

    def start(self, show_empty: Callable[[int], bool]) -> None:
        """Start the feed.

        Args:
            show_empty: gets the seconds for which no snapshot has come, and returns whether the
                screen still has none.
        """
        self._feed.start(self._publish, self._pacer.interval_s)
        began_s = time.monotonic()

        def tick() -> None:
            if show_empty(int(time.monotonic() - began_s)):
                self._screen.set_timer(_TICK_S, tick)

        self._screen.set_timer(_EMPTY_AFTER_S, tick)

    def _publish(self, snapshot: Snapshot) -> None:
        """Take a snapshot from the thread of the feed."""
        self.slot.put(snapshot)
        self._screen.post_message(self.Arrived())

    def may_draw(self, is_first: bool) -> bool:
        """Return whether the snapshot that arrived is drawn. If not, the message comes again."""
        before = self._pacer.interval_s
        # The first snapshot is drawn in any case: the user waits for it.
        drawn = is_first or self._pacer.may_draw(self._meter.drained)
        if self._pacer.interval_s != before:
            self._feed.set_interval(self._pacer.interval_s)
        if not drawn:
            # This one may be the last: the process may have ended.
            interval_s = self._pacer.interval_s
            self._screen.set_timer(interval_s, lambda: self._screen.post_message(self.Arrived()))
        return drawn

    def change_rate(self, steps: int) -> None:
        """Have that many steps more snapshots a second."""
        self._pacer.step(steps)
        self._feed.set_interval(self._pacer.interval_s)
