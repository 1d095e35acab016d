"""Reads the activity of the last two minutes for the overview, beside the keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from locktop.collector.model import Snapshot
from locktop.collector.recording.moments import Moments
from locktop.collector.recording.past_activity import ActivityPoint, PastActivity
from locktop.tui.widgets.list_screen import ListScreen


class ActivityReader:
    """Has the activity before the moment on the screen."""

    def __init__(
        self, moments: Moments | None, screen: ListScreen, changed: Callable[[], None]
    ) -> None:
        """Args:
        moments: the memory or the recording; None: nothing is kept.
        screen: has the worker.
        changed: is called when there are new figures.
        """
        self._past = PastActivity(moments)
        self._screen = screen
        self._changed = changed
        self._is_damaged = False
        self.is_reading = False
        #: The time of the snapshot on the screen, nanoseconds since 1970.
        self.until_ns = 0

    def show(self, snapshot: Snapshot, time_ns: int) -> None:
        """Take the snapshot on the screen and its time, nanoseconds since 1970."""
        self.until_ns = time_ns
        self._past.add(snapshot, time_ns)

    def points(self) -> Sequence[ActivityPoint]:
        """Return the points that are known, the earliest first; the others come later."""
        missing = () if self.is_reading or self._is_damaged else self._past.missing(self.until_ns)
        if missing:
            self.is_reading = True
            self._screen.start(partial(self._read, missing), "activity")
        return self._past.points(self.until_ns)

    async def _read(self, times_ns: Sequence[int]) -> None:
        try:
            self._past.add_points(await asyncio.to_thread(self._past.read, times_ns))
        except Exception:
            # Damage stays: a moment on the screen says what is damaged.
            self._is_damaged = True
            raise
        finally:
            self.is_reading = False
        self._changed()
