"""Where snapshots come from: one interface for a live process, a sampled one, a recording."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from locktop.collector.model import Kind, Snapshot


@dataclass(frozen=True, slots=True)
class WaitNow:
    """A wait that goes on, as little of it as tells whether it is worth a look."""

    lock: int  # id
    kind: Kind
    duration_s: float  # how long already, seconds
    seq: int  # differs for each wait of a thread
    holds: bool  # whether the waiting thread holds anything itself
    idle: bool | None = None  # for work, as the rules have it; None: a look with all names tells


class Source(Protocol):
    """Something that can be looked at again and again."""

    def scan(self, resolve: bool = False) -> Snapshot:
        """Return what there is to see now; with ``resolve`` wait for all names.

        After the target has ended, ``ended`` is set and the figures are the final ones; of a killed
        target with who waited for what and who held what, by threads that are dead. Later looks
        give the same again. Raises LocktopError when it can no longer be looked at.
        """
        ...

    def waits(self) -> Mapping[int, WaitNow] | None:
        """Return by tid the waits that go on now, in far less time than a look takes. None where
        only a look can tell, as when the target has ended."""
        ...

    def hurry(self) -> None:
        """Wait for names no longer: a look under way, and each one after it, has those that are
        known by then. For a handler of signals."""
        ...

    def follow(self, tid: int, locks: Collection[int] | None = None) -> None:
        """Ask more of one thread in each look from the next one on (Thread.switches,
        Thread.counters and Thread.now), 0: of none; and only of those that hold these ``locks``, by
        id, where in the code they are (ThreadNow.stack), None: of all holders. A look with all
        names asks of all anyway. May be called from another thread than the one that looks, and
        waits for nothing."""
        ...

    def set_level(self, name: str) -> str:
        """Set how much the library does in the target: one of levels.NAMES.

        Returns the level before. May be called from another thread than the one that looks; waits
        for a look that is under way. Raises LocktopError where it cannot be set.
        """
        ...

    def close(self) -> None:
        """Let go of the target."""
        ...
