"""How much threads of a process wait, by two quick scans. The process picker shows the results."""

from __future__ import annotations

import time

from msgspec import Struct

from locktop.collector.errors import LocktopError
from locktop.collector.model import ThreadState
from locktop.collector.sources import levels
from locktop.collector.sources.attach import attach

#: A cycle counts as a deadlock if two scans show the cycle unchanged.
_BETWEEN_S = 0.05


class StuckThreads(Struct, frozen=True):
    """The threads of a process that wait in contention now."""

    waiting: int
    longest_s: float
    deadlock: str = ""  # "certain", "possible" or ""

    @property
    def rank(self) -> tuple[bool, bool, float, int]:
        """A sort key: the process whose threads are most stuck has the least."""
        certain, possible = self.deadlock == "certain", self.deadlock == "possible"
        return not certain, not possible, -self.longest_s, -self.waiting


def survey(pid: int) -> StuckThreads | None:
    """Return how much the threads of a process with the library wait.

    Returns: None if the process is dormant, which no scan may change here, or cannot be scanned.
    """
    try:
        if levels.read_level(pid).level == "dormant":
            return None
        source = attach(pid, only_exact=True)
    except LocktopError:
        return None
    try:
        source.scan()
        time.sleep(_BETWEEN_S)
        snapshot = source.scan()
    except LocktopError:
        return None
    finally:
        source.close()
    waits = [
        thread.waiting_for.duration_s
        for thread in snapshot.threads
        if thread.state is ThreadState.WAITING and thread.waiting_for is not None
    ]
    certain = any(deadlock.certain for deadlock in snapshot.deadlocks) or (
        snapshot.hang is not None and snapshot.hang.certain
    )
    possible = "possible" if snapshot.deadlocks else ""
    return StuckThreads(len(waits), max(waits, default=0.0), "certain" if certain else possible)
