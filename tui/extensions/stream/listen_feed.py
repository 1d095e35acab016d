"""The feed of a screen that shows a process of another machine."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from locktop.collector.errors import LocktopError
from locktop.tui.feed import Publish

if TYPE_CHECKING:
    from locktop.collector.extensions.stream.listener import Listener
    from locktop.collector.extensions.stream.received_stream import ReceivedScan
    from locktop.collector.model import Snapshot
    from locktop.collector.recording.history import History
    from locktop.collector.recording.memory_keeper import GuardedMemory


class ListenFeed:
    """Publishes what a listener receives; owns the listener. See SnapshotFeed for the methods."""

    source = None

    def __init__(self, listener: Listener, history: History | None = None) -> None:
        """Args:
        listener: the bound address.
        history: the memory that all scans and ring records go to; None: nothing is kept.
        """
        self._listener = listener
        self._history = history
        self._memory: GuardedMemory | None = None

    @property
    def stale(self) -> str:
        return self._listener.stale

    def start(self, publish: Publish, interval_s: float) -> None:
        """See SnapshotFeed. The sender decides the interval."""
        self._publish = publish
        if self._history is not None:
            from locktop.collector.recording.memory_keeper import GuardedMemory, MemoryKeeper

            self._memory = GuardedMemory(MemoryKeeper(None, self._history))
        self._listener.start(self._pass_on, memory=self)

    def _pass_on(self, snapshot: Snapshot) -> None:
        self._publish(self._memory.annotate(snapshot) if self._memory is not None else snapshot)

    def keep_received(self, scan: ReceivedScan) -> None:
        if self._memory is not None:
            self._memory.keep_records(scan.records)
            if scan.time_ns is not None:
                self._memory.keep(scan.snapshot, taken_ns=scan.time_ns)

    def set_interval(self, interval_s: float) -> None:
        """See SnapshotFeed. The screen leaves out the snapshots that it does not draw."""

    def follow(self, tid: int, locks: Collection[int]) -> None:
        """See SnapshotFeed. The sender measures the same whatever the screen shows."""

    def want_section(self, name: str, wanted: bool) -> None:
        """See SnapshotFeed. The sender decides that, too."""

    def set_reading_names(self, wanted: bool) -> None:
        """See SnapshotFeed. The sender reads the names."""

    @property
    def no_level(self) -> str:
        return "The level is set where the process runs: `locktop ctl -p PID --level`"

    def set_level(self, name: str) -> str:
        raise LocktopError(self.no_level)

    def session(self, begins: bool) -> str:
        raise LocktopError("a session begins where the process runs: `locktop ctl -p PID --start`")

    def start_part(self, name: str, *arguments: Any) -> None:
        raise LocktopError(
            "samples are taken where the process runs: `locktop callers -p PID --inside LOCK`"
        )

    def end_part(self, name: str) -> None:
        pass

    def stop(self) -> None:
        self._listener.stop()
