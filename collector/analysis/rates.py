"""What happened in an interval, out of counters that only grow."""

from __future__ import annotations

from collections.abc import Mapping

from locktop.collector.model import CONTENTION_KINDS, Kind, LockRates


def share(part_s: float, interval_s: float) -> float:
    """Return a part of an interval, 0 to 1; the clocks of the two may differ a little."""
    return min(max(part_s / interval_s, 0.0), 1.0) if interval_s > 0 else 0.0


def lock_rates(
    interval_s: float, acquisitions: float, contended: float, wait_s: float, hold_s: float
) -> LockRates:
    """Return changes per second of the interval; what shrank (a wait seen going on that ended while
    it was read) counts as 0."""
    if interval_s <= 0:
        return LockRates()
    return LockRates(
        acquisitions=max(acquisitions, 0.0) / interval_s,
        contended=max(contended, 0.0) / interval_s,
        wait=max(wait_s, 0.0) / interval_s,
        hold=max(hold_s, 0.0) / interval_s,
    )


def split(wait_s: Mapping[Kind, float]) -> tuple[float, float]:
    """Return the seconds waited in contention, and those spent idle."""
    contention = sum(seconds for kind, seconds in wait_s.items() if kind in CONTENTION_KINDS)
    return contention, sum(wait_s.values()) - contention
