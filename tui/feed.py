"""Where the screen's snapshots come from: the collector's poller, or a test."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from locktop.collector.errors import LocktopError
from locktop.collector.model import Snapshot

if TYPE_CHECKING:
    from locktop.collector.config.suppressions import Suppression
    from locktop.collector.recording.history import History
    from locktop.collector.recording.memory_keeper import GuardedMemory
    from locktop.collector.recording.sessions import LiveSession
    from locktop.collector.sources.attach import Source
    from locktop.collector.sources.poller import Poller

Publish = Callable[[Snapshot], None]

#: Seconds between the first scans, which are closer: rates need two, and names take a moment.
_FIRST_SCANS_S = 0.2
_FIRST_SCANS = 5


class SnapshotFeed(Protocol):
    """Publishes snapshots, from any thread, until it is stopped."""

    @property
    def stale(self) -> str:
        """The reason that no newer snapshot comes for now, one line; "" while they come."""

    def start(self, publish: Publish, interval_s: float) -> None:
        """Start; ``publish`` is called with each snapshot and returns at once."""

    def set_interval(self, interval_s: float) -> None:
        """Change the seconds between two snapshots."""

    def follow(self, tid: int, locks: Collection[int]) -> None:
        """Measure more of one thread in each scan, and of the holders of these locks.

        ``tid`` 0 is no thread. Returns at once.
        """

    def want_section(self, name: str, wanted: bool) -> None:
        """Have a section that is on request alone, from the next scan on. Returns at once."""

    def set_reading_names(self, wanted: bool) -> None:
        """Read names, or read no more. Returns at once."""

    @property
    def no_level(self) -> str:
        """Why no level can be set, whatever the process is; "" if one can."""

    def set_level(self, name: str) -> str:
        """Set the level of the library in the process; return the level before.

        The call may block, so the thread that draws must not make it. Raises LocktopError.
        """

    def session(self, begins: bool) -> str:
        """Begin the session anew, or end it; return a message for the user.

        The call may block, so the thread that draws must not make it. Raises LocktopError.
        """

    def start_part(self, name: str, *arguments: Any) -> None:
        """Let the session part of an extension work from now on, see Source.start_part().

        The call may block, so the thread that draws must not make it. Raises LocktopError.
        """

    def end_part(self, name: str) -> None:
        """End this work. The call may block."""

    @property
    def source(self) -> Source | None:
        """The process, for a longer measurement; None: it does not run on this machine."""

    def stop(self) -> None:
        """Stop; no snapshot is published afterwards."""


class PollerFeed:
    """The collector's poller thread as a feed; owns the source and closes it.

    The first scan is after ``start``. To resolve names earlier would delay the import of the
    screen. Only one thread of Python runs at a time.
    """

    stale = ""

    def __init__(self, source: Source, history: History | None = None) -> None:
        """Args:
        source: the process.
        history: the memory that each scan goes to; None: nothing is kept.
        """
        self._source = source
        self._history = history
        self._memory: GuardedMemory | None = None
        self.suppressions: Sequence[Suppression] = ()
        self._poller: Poller | None = None
        self._scans = 0
        self._session: LiveSession | None = None

    def start(self, publish: Publish, interval_s: float) -> None:
        from locktop.collector.recording.sessions import LiveSession
        from locktop.collector.sources.poller import Poller

        self._session = LiveSession()
        self._publish = publish
        self._interval_s = interval_s
        if self._history is not None:
            from locktop.collector.recording.memory_keeper import GuardedMemory, MemoryKeeper

            self._memory = GuardedMemory(MemoryKeeper(self._source, self._history))
        self._poller = Poller(self._source, _FIRST_SCANS_S, self._pass_on)
        self._poller.start()

    def set_interval(self, interval_s: float) -> None:
        self._interval_s = interval_s
        if self._poller is not None:
            self._poller.interval_s = interval_s

    def follow(self, tid: int, locks: Collection[int]) -> None:
        self._source.follow(tid, locks)

    def want_section(self, name: str, wanted: bool) -> None:
        self._source.want_section(name, wanted)

    def set_reading_names(self, wanted: bool) -> None:
        self._source.set_reading_names(wanted)

    @property
    def no_level(self) -> str:
        return ""

    def set_level(self, name: str) -> str:
        return self._source.set_level(name)

    def session(self, begins: bool) -> str:
        if self._session is None:
            raise LocktopError("there is no scan yet")
        return self._session.start() if begins else self._session.stop()

    def start_part(self, name: str, *arguments: Any) -> None:
        self._source.start_part(name, *arguments)

    def end_part(self, name: str) -> None:
        self._source.end_part(name)

    @property
    def source(self) -> Source | None:
        return self._source

    def stop(self) -> None:
        if self._poller is not None:
            self._poller.stop()
        if self._memory is not None:
            self._memory.close()
        self._source.close()

    def _pass_on(self, snapshot: Snapshot) -> None:
        self._scans += 1
        if self._scans == _FIRST_SCANS:
            self.set_interval(self._interval_s)
        whole = self._drop_suppressed(snapshot)
        visible = self._session.apply(whole) if self._session is not None else whole
        if self._memory is None:
            self._publish(visible)
            return
        visible = self._memory.annotate(visible)
        self._publish(visible)
        # The user sees the scan before the memory has it.
        self._memory.keep(visible, whole)

    def _drop_suppressed(self, snapshot: Snapshot) -> Snapshot:
        if not self.suppressions or not snapshot.lock_order:
            return snapshot
        from locktop.collector.config import suppressions

        return suppressions.apply(snapshot, self.suppressions)


class ReplayFeed:
    """The feed of a replay, which publishes nothing: the screen reads all moments itself."""

    stale = ""
    source = None
    _origin = "a recording"

    def start(self, publish: Publish, interval_s: float) -> None:
        pass

    def set_interval(self, interval_s: float) -> None:
        pass

    def follow(self, tid: int, locks: Collection[int]) -> None:
        pass

    def want_section(self, name: str, wanted: bool) -> None:
        """See SnapshotFeed. A recording has what was recorded."""

    def set_reading_names(self, wanted: bool) -> None:
        pass

    @property
    def no_level(self) -> str:
        return f"There is no level to set: this is {self._origin}."

    def set_level(self, name: str) -> str:
        raise LocktopError(f"there is no level to set: this is {self._origin}")

    def session(self, begins: bool) -> str:
        raise LocktopError(f"there is no session to begin or end: this is {self._origin}")

    def start_part(self, name: str, *arguments: Any) -> None:
        raise LocktopError(f"there is nothing to sample: this is {self._origin}")

    def end_part(self, name: str) -> None:
        pass

    def stop(self) -> None:
        pass


class CoreFeed(ReplayFeed):
    """The feed of a core dump, whose one snapshot is published at the start."""

    _origin = "a core"

    def __init__(self, snapshot: Snapshot) -> None:
        """``snapshot``: the scan of the core."""
        self._snapshot = snapshot

    def start(self, publish: Publish, interval_s: float) -> None:
        publish(self._snapshot)


class Slot:
    """Holds the newest snapshot. Any thread may call ``put``."""

    def __init__(self) -> None:
        self._newest: Snapshot | None = None

    def put(self, snapshot: Snapshot) -> None:
        """Replace the snapshot."""
        self._newest = snapshot

    @property
    def newest(self) -> Snapshot | None:
        """The newest snapshot, None before the first."""
        return self._newest
