"""Rates of an interval, from counters that only grow."""

from __future__ import annotations

from collections.abc import Mapping

from locktop.collector.model import CONTENTION_KINDS, Kind, LockRates


def share(part_s: float, interval_s: float) -> float:
    """Return the share of an interval, from 0 to 1. The times may come from different clocks."""
    if part_s <= 0.0 or interval_s <= 0.0:
        return 0.0
    return part_s / interval_s if part_s < interval_s else 1.0


def lock_rates(
    interval_s: float,
    acquisitions: float,
    contended: float,
    wait_s: float,
    hold_s: float,
    signals: float,
    unheld_s: float,
) -> LockRates:
    """Return the changes of an interval per second.

    A negative change counts as 0: an observed wait may have ended while it was read.
    """
    if interval_s <= 0:
        return LockRates()
    return LockRates(
        acquisitions=max(acquisitions, 0.0) / interval_s,
        contended=max(contended, 0.0) / interval_s,
        wait=max(wait_s, 0.0) / interval_s,
        hold=max(hold_s, 0.0) / interval_s,
        signals=max(signals, 0.0) / interval_s,
        unheld=max(unheld_s, 0.0) / interval_s,
    )


def split(wait_s: Mapping[Kind, float]) -> tuple[float, float]:
    """Return the seconds of contended waits and of idle waits, by kind alone."""
    contention_s = idle_s = 0.0
    for kind, seconds in wait_s.items():
        if kind in CONTENTION_KINDS:
            contention_s += seconds
        else:
            idle_s += seconds
    return contention_s, idle_s
