"""The time of a scan: when it read the process, which may be long before the scan was ready."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from locktop.collector.model import Snapshot

#: A last scan waits for names for up to 30 seconds. A longer time is a change of the clock.
_MAX_AGE_NS = 60 * 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def scan_time_ns(snapshot: Snapshot, now_ns: int) -> int:
    """Return when a scan read the process, nanoseconds since 1970.

    The durations of its waits are those of that moment.

    Args:
        snapshot: a scan of this machine.
        now_ns: the time, which counts if the snapshot has no usable time.
    """
    try:
        taken = datetime.fromisoformat(snapshot.taken_at)
        taken_ns = (taken - _EPOCH) // timedelta(microseconds=1) * 1000
    except (ValueError, TypeError):  # TypeError: a time without a zone
        return now_ns
    return taken_ns if 0 <= now_ns - taken_ns <= _MAX_AGE_NS else now_ns
