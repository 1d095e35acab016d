"""Raw slots of the flight recorder, with the clock that gives them absolute times."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from locktop.collector.model import WaitRecord
from locktop.collector.native import lib
from locktop.collector.shm import event_ring
from locktop.collector.shm.kinds import KINDS

_RECORD_TIMEOUT: int = lib.LT_RECORD_TIMEOUT
_NS = 1_000_000_000


class SlotBatch(Struct, array_like=True, frozen=True):
    """Slots that were copied together. At one moment the clocks read ``ticks`` and ``time_ns``."""

    ticks: int
    time_ns: int  # nanoseconds since 1970, UTC
    hz: float  # ticks of a second
    lost: int  # records known to be lost since the batch before
    records: bytes  # slots of 64 bytes (abi.h), of all threads, marks excluded


def decode(batch: SlotBatch) -> Iterator[WaitRecord]:
    """Yield the records of a batch, in the order of the slots. Damaged slots are left out."""
    if not 1 <= batch.hz <= 1e12:
        return
    ns_per_tick = _NS / batch.hz
    whole = len(batch.records) // event_ring.SIZE * event_ring.SIZE
    for raw in event_ring.decode(batch.records[:whole])[0]:
        kind = KINDS.get(raw.kind)
        if kind is None:
            continue
        yield WaitRecord(
            tid=raw.tid,
            lock=raw.lock,
            kind=kind,
            began_ns=batch.time_ns - round((batch.ticks - raw.start) * ns_per_tick),
            wait_ns=round(raw.wait * ns_per_tick),
            hold_ns=round(raw.hold * ns_per_tick) if raw.hold else None,
            stack=raw.stack,
            holder=raw.holder,
            site=raw.site,
            timed_out=raw.type == _RECORD_TIMEOUT,
        )
