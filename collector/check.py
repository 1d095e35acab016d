"""Is it deadlocked? For probes: two looks, and more only while a cycle is not settled."""

from __future__ import annotations

import time

from locktop.collector.model import Deadlock
from locktop.collector.source import Source

_BETWEEN_LOOKS_S = 0.05


def check(source: Source) -> tuple[Deadlock, ...]:
    """Return the deadlocks; raises LocktopError when the process cannot be looked at."""
    source.look()
    time.sleep(_BETWEEN_LOOKS_S)
    found = source.look()
    if found.deadlocks:
        found = source.look(resolve=True)
    return found.deadlocks
