"""Scans of a process by the test itself."""

from __future__ import annotations

import time
from contextlib import closing

from locktop.collector.model import Snapshot
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from support.targets import PATIENCE_S

#: Waits that have lasted for one second may also be part of a possible deadlock.
SETTLED_S = 1.2


def full_scan(pid: int) -> Snapshot:
    """Return a snapshot with all names."""
    with closing(attach(pid)) as source:
        return source.scan(resolve=True)


def settle(source: Source, tid: int) -> None:
    """Scan until a thread has waited for SETTLED_S seconds."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        seen = source.scan()
        wait = next(thread.waiting_for for thread in seen.threads if thread.tid == tid)
        if wait is not None and wait.duration_s > SETTLED_S:
            return
        assert time.monotonic() < deadline, wait
        time.sleep(0.1)  # leaves the CPU to the targets
