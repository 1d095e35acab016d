"""Where pictures come from: the collector's worker, or a test that made some by hand."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from locktop.collector.model import Snapshot

if TYPE_CHECKING:
    from locktop.collector.source import Source
    from locktop.collector.worker import Worker

Publish = Callable[[Snapshot], None]

#: Between the looks that are made before there is a screen, seconds.
_FIRST_LOOKS_S = 0.1


class SnapshotFeed(Protocol):
    """Publishes snapshots, from any thread, until it is stopped."""

    def start(self, publish: Publish, interval_s: float) -> None:
        """Begin; ``publish`` is called with each snapshot and returns at once."""

    def set_interval(self, interval_s: float) -> None:
        """Change the seconds between two snapshots."""

    def stop(self) -> None:
        """End; nothing is published afterwards."""


class WorkerFeed:
    """The collector's worker thread as a feed; owns the source and closes it.

    It may begin before there is a screen: the first looks, which find names, then go on while
    the screen is still being imported.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._worker: Worker | None = None
        self._lock = threading.Lock()
        self._held: Snapshot | None = None
        self._publish: Publish = self._hold

    def begin(self) -> None:
        """Look already; what is seen is kept until ``start``."""
        from locktop.collector.worker import Worker

        self._worker = Worker(self._source, _FIRST_LOOKS_S, self._pass_on)
        self._worker.start()

    def start(self, publish: Publish, interval_s: float) -> None:
        """See SnapshotFeed."""
        if self._worker is None:
            self.begin()
        self.set_interval(interval_s)
        with self._lock:
            self._publish = publish
            if self._held is not None:
                publish(self._held)

    def set_interval(self, interval_s: float) -> None:
        """See SnapshotFeed."""
        if self._worker is not None:
            self._worker.interval_s = interval_s

    def stop(self) -> None:
        """See SnapshotFeed."""
        if self._worker is not None:
            self._worker.stop()
        self._source.close()

    def _pass_on(self, snapshot: Snapshot) -> None:
        with self._lock:
            self._publish(snapshot)

    def _hold(self, snapshot: Snapshot) -> None:
        self._held = snapshot


class Slot:
    """Holds the newest snapshot and no other; ``put`` may be called from any thread."""

    def __init__(self) -> None:
        self._newest: Snapshot | None = None

    def put(self, snapshot: Snapshot) -> None:
        """Replace what is there."""
        self._newest = snapshot

    @property
    def newest(self) -> Snapshot | None:
        """The newest one, None before the first."""
        return self._newest
