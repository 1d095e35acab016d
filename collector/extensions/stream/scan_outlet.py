"""Puts the scans of a process and its ring records into an outbox."""

from __future__ import annotations

import time
from collections.abc import Callable

from locktop.collector.extensions.stream.stream_sender import Outbox
from locktop.collector.model import Snapshot
from locktop.collector.recording.memory_keeper import HasRings
from locktop.collector.recording.ring_keeper import RingKeeper
from locktop.collector.recording.scan_time import scan_time_ns

#: Batches of ring records from before the first scan.
_FIRST_CALLS = 1
#: A listener takes an older scan for one of another clock.
_MAX_AGE_NS = 2_000_000_000


class ScanOutlet:
    """Give it each scan. One thread uses it, the thread that scans."""

    def __init__(self, source: HasRings, outbox: Outbox, log: Callable[[str], None]) -> None:
        """Args:
        source: the process; its ring records are sent from the first scan on.
        outbox: where both go.
        log: gets a line if no more ring records can be sent.
        """
        self._source: HasRings | None = source
        self._outbox = outbox
        self._log = log
        self._rings: RingKeeper | None = None

    def put(self, snapshot: Snapshot) -> None:
        """Put a scan into the outbox, after the ring records until then. Raises nothing."""
        now_ns = time.time_ns()
        time_ns = max(scan_time_ns(snapshot, now_ns), now_ns - _MAX_AGE_NS)
        try:
            self._take_records(snapshot.ended)
        # Without ring records the snapshots go on.
        except Exception as error:
            self._log(f"no more ring records are sent: {type(error).__name__}: {error}")
            self.close()
            self._rings = None
        self._outbox.put(snapshot, time_ns)

    def close(self) -> None:
        """Take no more ring records."""
        if self._rings is not None:
            self._rings.close()

    def _take_records(self, has_ended: bool) -> None:
        if self._source is not None:
            source, self._source = self._source, None
            # The rings of many threads take long to empty, and the cost is bounded.
            drain = source.drain(_FIRST_CALLS)
            if drain is not None:
                self._rings = RingKeeper(drain, self._outbox)
                self._rings.flush()
        if self._rings is None:
            return
        self._rings.flush() if has_ended else self._rings.catch_up()
        self._rings.take_long_waits()  # the listener finds them; this raises a fault of the thread
