"""Has the process sampled while a screen shows what runs inside a lock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from locktop.collector.errors import LocktopError
from locktop.tui.feed import SnapshotFeed
from locktop.tui.widgets.list_screen import ListScreen


class InsideSampling:
    """Begins and ends the samples; each call of the feed may block, so a thread makes them."""

    def __init__(self, feed: SnapshotFeed, screen: ListScreen, *, is_replay: bool) -> None:
        """Args:
        feed: takes the samples.
        screen: has the worker.
        is_replay: whether there is a recording and no process.
        """
        self._feed = feed
        self._screen = screen
        self.is_replay = is_replay
        #: Why there are no samples, one line; "" where nothing prevents them.
        self.refusal = ""
        self._wanted: int | None = None  # id of a lock
        self._now: int | None = None
        self._is_busy = False
        self._changed: Callable[[], None] = lambda: None

    @property
    def is_on(self) -> bool:
        """Whether locktop takes samples, or is about to."""
        return self._wanted is not None and not self.refusal

    def begin(self, lock: int, changed: Callable[[], None]) -> None:
        """Sample what runs inside a lock; ``changed`` is called if the feed refuses."""
        if self._wanted == lock or self.is_replay:
            return
        self.refusal, self._changed = "", changed
        self._want(lock)

    def end(self) -> None:
        """Take no more samples."""
        self._changed = lambda: None
        self._want(None)

    def _want(self, lock: int | None) -> None:
        self._wanted = lock
        if not self._is_busy:
            self._is_busy = True
            self._screen.start(self._apply, "inside")

    async def _apply(self) -> None:
        try:
            while self._now != self._wanted:
                lock = self._now = self._wanted
                try:
                    if lock is None:
                        await asyncio.to_thread(self._feed.end_part, "inside")
                    else:
                        await asyncio.to_thread(self._feed.start_part, "inside", (lock,))
                except LocktopError as error:
                    if lock is not None and lock == self._wanted:
                        self.refusal = str(error)
                        self._changed()
        finally:
            self._is_busy = False
