"""The interface of all sources of snapshots: a live process, a sampled process, a recording."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from msgspec import Struct

from locktop.collector.model import Kind, Snapshot
from locktop.collector.shm.ring_drain import FIRST_CALLS, RingDrain


class OngoingWait(Struct, frozen=True):
    """A wait that goes on, with the few facts that decide whether a scan is worth while."""

    lock: int  # id
    kind: Kind
    duration_s: float  # seconds so far
    seq: int  # number that differs for each wait of a thread
    holds: bool  # whether the waiting thread holds a lock itself
    #: whether the idle rules call it a wait for work; None: only a scan with all names knows
    idle: bool | None = None


class Source(Protocol):
    """A process or a recording that gives one snapshot after the other."""

    def scan(self, resolve: bool = False) -> Snapshot:
        """Take a snapshot.

        After the target has ended, ``ended`` is set and the figures are final. The snapshot of a
        killed target keeps its waits and holds, of dead threads. Later scans return the same
        snapshot.

        Args:
            resolve: whether to wait for all names.

        Raises:
            LocktopError: locktop can no longer read the target.
        """
        ...

    def waits(self) -> Mapping[int, OngoingWait] | None:
        """Return the waits that go on, by tid, in far less time than a scan takes.

        Returns:
            the waits; None if only a scan can show them, as after the end of the target.
        """
        ...

    def hurry(self) -> None:
        """Stop waiting for names.

        The current scan and all later scans use the names that are known by then. A signal handler
        may call this method.
        """
        ...

    def follow(self, tid: int, locks: Collection[int] | None = None) -> None:
        """Query more about one thread from the next scan on.

        The followed thread gets Thread.switches, Thread.counters and Thread.now. A scan with all
        names queries all threads anyway. Another thread than the scanning one may call this method.
        The method never blocks.

        Args:
            tid: the thread; 0: none.
            locks: ids of the locks whose holders get a stack (ThreadActivity.stack); None: all
                locks.
        """
        ...

    def want_section(self, name: str, wanted: bool) -> None:
        """Fill in a section that is on request alone from the next scan on, or leave it out.

        Another thread than the scanning one may call this method. The method never blocks.
        """
        ...

    def set_reading_names(self, wanted: bool) -> None:
        """Read names from the next scan on, or read no more: addresses stay without names.

        Another thread than the scanning one may call this method. The method never blocks.
        """
        ...

    def set_level(self, name: str) -> str:
        """Set how much the library records in the target.

        Another thread than the scanning one may call this method. The method waits for the current
        scan.

        Args:
            name: one of levels.NAMES.

        Returns:
            the level before.

        Raises:
            LocktopError: the level cannot be set.
        """
        ...

    def drain(self, first_calls: int = FIRST_CALLS) -> RingDrain | None:
        """Return what copies the ring records as they come; None from a source without rings.

        There may be several drains, and each gets all records. See RingDrain for ``first_calls``.
        The drain goes on with the next program after exec(). The caller closes the drain. Another
        thread than the scanning one may use the drain, and drains and scans never wait for each
        other.
        """
        ...

    def start_part(self, name: str, *arguments: Any) -> None:
        """Let the session part of an extension work between the scans, which have its results.

        A further call begins anew.

        Args:
            name: of the extension.
            arguments: what the part's start() takes.

        Raises:
            LocktopError: only the library makes that possible, or the part cannot work here.
        """
        ...

    def end_part(self, name: str) -> None:
        """End this work, and forget its results."""
        ...

    def close(self) -> None:
        """Release the target."""
        ...
