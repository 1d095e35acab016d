"""Builds the model's events and marks from the records of the flight recorder."""

from __future__ import annotations

from locktop.collector.model import Event, Mark
from locktop.collector.native import lib
from locktop.collector.sanitize import clean
from locktop.collector.shm import event_ring
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.event_ring import RawEvent, RawMark
from locktop.collector.shm.kinds import KINDS, SHARED

_RECORD_TIMEOUT: int = lib.LT_RECORD_TIMEOUT


def event(raw: RawEvent, now: int, clock: Clock) -> Event | None:
    """Return a record as an event of the model.

    None for a signal, a wake of waiters, and an unknown kind of lock.
    """
    kind = KINDS.get(raw.kind & ~SHARED)
    if kind is None or event_ring.is_signal(raw) or event_ring.is_release(raw):
        return None
    return Event(
        tid=raw.tid,
        lock=raw.lock,
        kind=kind,
        ago_s=clock.seconds(now - raw.start),
        wait_s=clock.seconds(raw.wait),
        hold_s=clock.seconds(raw.hold) if raw.hold else None,
        stack=raw.stack,
        holder=raw.holder,
        site=raw.site,
        timed_out=raw.type == _RECORD_TIMEOUT,
    )


def mark(raw: RawMark, now: int, clock: Clock) -> Mark:
    """Return a record as a mark of the model."""
    return Mark(tid=raw.tid, ago_s=clock.seconds(now - raw.start), text=clean(raw.text))
