"""The feed of a screen that shows a process of another machine."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.tui.feed import Publish

if TYPE_CHECKING:
    from locktop.collector.stream.listener import Listener


class ListenFeed:
    """Publishes what a listener receives; owns the listener. See SnapshotFeed for the methods."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def start(self, publish: Publish, interval_s: float) -> None:
        """See SnapshotFeed. The sender decides the interval."""
        self._listener.start(publish)

    def set_interval(self, interval_s: float) -> None:
        """See SnapshotFeed. The screen leaves out the snapshots that it does not draw."""

    def follow(self, tid: int, locks: Collection[int]) -> None:
        """See SnapshotFeed. The sender measures the same whatever the screen shows."""

    def set_level(self, name: str) -> str:
        """See SnapshotFeed."""
        raise LocktopError("the level is set where the process runs: `locktop ctl -p PID --level`")

    def session(self, begins: bool) -> str:
        """See SnapshotFeed."""
        raise LocktopError("a session begins where the process runs: `locktop ctl -p PID --start`")

    def stop(self) -> None:
        """See SnapshotFeed."""
        self._listener.stop()
