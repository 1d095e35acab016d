"""The view of what runs inside a lock: what the key of the monitor opens."""

from __future__ import annotations

from locktop.collector.extensions.inside.model import NAME
from locktop.collector.model import Lock, Snapshot
from locktop.tui.screens.view_host import ViewHost


class InsideView:
    """Opens the screen of a lock. See View."""

    def __init__(self, host: ViewHost) -> None:
        """``host``: the monitor."""
        self._host = host

    def open(self, snapshot: Snapshot, lock: Lock | None) -> None:
        host, below = self._host, self._host.below
        if lock is None:
            text = "Choose one lock, or a thread at a lock: I shows what runs inside."
            host.monitor.show_message(text)
            return
        from locktop.tui.extensions.inside.sampling import InsideSampling
        from locktop.tui.extensions.inside.screen import InsideLockScreen

        screen = InsideLockScreen(
            snapshot,
            lock,
            InsideSampling(host.feed, host.monitor, is_replay=host.past.is_replay),
            below.status,
            pause=below.pause,
            travel=below.travel,
            now=host.now,
        )
        screen.view_name = NAME
        host.show(screen, lambda: None)

    def tick(self) -> None:
        pass

    def annotate(self, snapshot: Snapshot) -> Snapshot:
        return snapshot
