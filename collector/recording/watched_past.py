"""Watches a process for a moment, for a time line without a screen or a recording."""

from __future__ import annotations

import time

from locktop.collector.recording.history import History
from locktop.collector.shm.ring_drain import RingDrain
from locktop.collector.sources.base import Source

#: Seconds between two scans: ring records are exact, and samples are as exact as this.
_INTERVAL_S = 0.1
#: More than any moment needs.
_MAX_BYTES, _MARGIN_S = 1 << 30, 3600.0


def watch(source: Source, span_s: float) -> History:
    """Watch a process.

    Args:
        source: the process.
        span_s: seconds; less if the process ends.

    Raises:
        LocktopError: locktop can no longer read the process.
    """
    past = History(_MAX_BYTES, span_s + _MARGIN_S)
    drain = source.drain()
    try:
        _watch(source, drain, past, span_s)
    finally:
        if drain is not None:
            drain.close()
    return past


def _watch(source: Source, drain: RingDrain | None, past: History, span_s: float) -> None:
    until, time_ns, pause_s = time.monotonic() + span_s, 0, 0.0
    while True:
        slots = None
        if drain is not None:
            slots = drain.take(pause_s).slots  # sooner if there are many
        else:
            time.sleep(pause_s)
        left_s = until - time.monotonic()
        # A scan copies the memory first, and looks for names afterwards.
        time_ns = max(time.time_ns(), time_ns + 1)
        snapshot = source.scan(resolve=left_s <= 0)
        past.add(snapshot, time_ns, slots)
        if left_s <= 0 or snapshot.ended:
            return
        pause_s = min(_INTERVAL_S, max(0.0, until - time.monotonic()))
