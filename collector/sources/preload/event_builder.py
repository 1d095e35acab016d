"""From ticks and ids to the model: what the flight recorder has kept."""

from __future__ import annotations

from locktop.collector.model import Event, Mark
from locktop.collector.native import lib
from locktop.collector.sanitize import clean
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.event_ring import RawEvent, RawMark
from locktop.collector.shm.kinds import KINDS

_RECORD_TIMEOUT: int = lib.LT_RECORD_TIMEOUT


def event(raw: RawEvent, now: int, clock: Clock) -> Event | None:
    """Return a record as the model has it; None when its kind is not known."""
    kind = KINDS.get(raw.kind)
    if kind is None:
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
    """Return a mark as the model has it."""
    return Mark(raw.tid, clock.seconds(now - raw.start), clean(raw.text))
