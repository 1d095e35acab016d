"""Raw slots of the flight recorder, with the clock that gives them absolute times.

A recording has packed slots. ``lt_pack_records`` (native/reader/slots.c) packs n slots column by
column, all n values of one column after the other. The columns are in the order of abi.h:

- type and kind: one byte for each record;
- tid, lock, stack, holder: the difference to the record before, modulo 2^32 and signed;
- start: the difference to the record before, modulo 2^64 and signed;
- wait, hold: the number itself;
- site: the difference to the record before, modulo 2^64 and signed.

The first difference is to 0. A signed number d becomes 2d if d >= 0, else -2d - 1. A number is then
written in groups of seven bits, the lowest group first. All bytes but the last have the highest
bit.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.errors import LocktopError
from locktop.collector.model import MarkRecord, SignalRecord, WaitRecord
from locktop.collector.native import ffi, lib
from locktop.collector.sanitize import clean
from locktop.collector.shm import event_ring
from locktop.collector.shm.kinds import KINDS, SHARED

_RECORD_TIMEOUT: int = lib.LT_RECORD_TIMEOUT
_RECORD_BROADCAST: int = lib.LT_RECORD_BROADCAST
_NS = 1_000_000_000
#: Ticks by which a span is picked too wide, because floats round; and the largest clock.
_MARGIN, _MAX_TICKS = 1 << 12, (1 << 64) - 1
#: Records of one batch, and the least bytes of each when packed.
_MAX_PACKED, _LEAST_PACKED = 1 << 20, 10
_new_uncleared = ffi.new_allocator(should_clear_after_alloc=False)


class SlotBatch(Struct, array_like=True, frozen=True):
    """Slots that were copied together. At one moment the clocks read ``ticks`` and ``time_ns``."""

    ticks: int
    time_ns: int  # nanoseconds since 1970, UTC
    hz: float  # ticks of a second
    lost: int  # records known to be lost since the batch before
    records: bytes  # slots of 64 bytes (abi.h), of all threads, without marks; or packed slots
    packed: int = 0  # number of records that ``records`` has packed; 0: they are not packed
    first: int = 0  # ticks when the earliest of the records and marks began; 0: not known
    marks: bytes = b""  # slots of marks of the program

    @property
    def mark_count(self) -> int:
        """The number of marks."""
        return len(self.marks) // event_ring.SIZE

    @property
    def is_empty(self) -> bool:
        """Whether the batch tells nothing."""
        return not (self.records or self.marks or self.lost)


def replace_records(batch: SlotBatch, records: bytes) -> SlotBatch:
    """Return a batch of the same moment with other slots, which are not packed, without marks."""
    return replace(batch, records=records, first=0, packed=0, lost=0, marks=b"")


def drop_marks(batch: SlotBatch) -> SlotBatch:
    """Return the batch without its marks."""
    # Without records, ``first`` may be the time of a mark.
    return replace(batch, marks=b"", first=batch.first if batch.records else 0)


def pack(batch: SlotBatch) -> SlotBatch:
    """Return the batch with packed slots, in a tenth of the bytes. Damaged slots are left out."""
    if batch.packed or not batch.records:
        return batch
    sound = event_ring.sound(batch.records)[: _MAX_PACKED * event_ring.SIZE]
    count = len(sound) // event_ring.SIZE
    to = _new_uncleared("uint8_t[]", max(count, 1) * lib.LT_PACKED_RECORD_MAX)
    source = ffi.from_buffer("uint8_t[]", sound)
    size = lib.lt_pack_records(source, count, to)
    first = lib.lt_first_start(source, count)
    # The batch may have earlier marks.
    first = min(int(first), batch.first) if batch.first and count else batch.first or int(first)
    return replace(batch, records=bytes(ffi.buffer(to, size)), first=first, packed=count)


def parts(batch: SlotBatch, count: int) -> Iterator[SlotBatch]:
    """Yield a batch in parts of at most ``count`` records, packed. The first has the losses."""
    if pack(batch).packed <= count:
        yield pack(batch)
        return
    data, size = slots(batch), count * event_ring.SIZE
    for start in range(0, len(data), size):
        part = pack(replace_records(batch, data[start : start + size]))
        yield part if start else replace(part, lost=batch.lost)


def join(before: SlotBatch | None, later: SlotBatch, max_bytes: int) -> SlotBatch:
    """Return the last ``max_bytes`` of two batches of one clock, which are not packed."""
    records = (before.records if before is not None else b"") + later.records
    # The later batch tells the times of both.
    return replace_records(later, records[-max_bytes:])


def slots(batch: SlotBatch) -> bytes:
    """Return the slots of a batch, unpacked.

    Raises:
        LocktopError: the packed slots are damaged.
    """
    if not batch.packed:
        return batch.records[: len(batch.records) // event_ring.SIZE * event_ring.SIZE]
    if not 0 < batch.packed <= min(_MAX_PACKED, len(batch.records) // _LEAST_PACKED):
        raise LocktopError("damaged: a batch has another number of records than its bytes")
    to = _new_uncleared("uint8_t[]", batch.packed * event_ring.SIZE)
    source = ffi.from_buffer("uint8_t[]", batch.records)
    if not lib.lt_unpack_records(source, len(batch.records), to, batch.packed):
        raise LocktopError("damaged: a batch has another number of records than its bytes")
    return bytes(ffi.buffer(to))


def long_waits(batch: SlotBatch, wait_s: float) -> SlotBatch:
    """Return the records of waits of at least ``wait_s`` seconds, above 0. They are not packed."""
    ticks = max(1, round(wait_s * batch.hz))
    return replace_records(batch, event_ring.long_waits(slots(batch), ticks))


def first_ns(batch: SlotBatch) -> int:
    """Return when the earliest of the records began, nanoseconds since 1970; 0: not known."""
    if not batch.first or not 1 <= batch.hz <= 1e12:
        return 0
    # A damaged ring may name a begin after the copy.
    ago_ns = round((batch.ticks - batch.first) * (_NS / batch.hz))
    return min(max(0, batch.time_ns - ago_ns), batch.time_ns)


def decode_span(batch: SlotBatch, from_ns: int, to_ns: int) -> list[WaitRecord]:
    """Return the records of a batch that touch a span, nanoseconds since 1970.

    Raises:
        LocktopError: the packed slots are damaged.
    """
    picked = _pick_span(batch, from_ns, to_ns)
    return [
        record for record in decode(picked) if record.began_ns < to_ns and record.end_ns >= from_ns
    ]


def decode_signals(batch: SlotBatch, from_ns: int, to_ns: int) -> list[SignalRecord]:
    """Return the signals of a batch in a span, nanoseconds since 1970.

    Raises:
        LocktopError: the packed slots are damaged.
    """
    signals = _signals(_pick_span(batch, from_ns, to_ns))
    return [signal for signal in signals if from_ns <= signal.time_ns < to_ns]


def decode_marks(batch: SlotBatch, from_ns: int, to_ns: int) -> list[MarkRecord]:
    """Return the marks of a batch in a span, nanoseconds since 1970, without damaged ones."""
    if not batch.marks or not 1 <= batch.hz <= 1e12:
        return []
    ns_per_tick = _NS / batch.hz
    texts: dict[bytes, str] = {}
    marks = []
    whole = batch.marks[: batch.mark_count * event_ring.SIZE]
    for raw in event_ring.decode_marks(whole)[0]:
        time_ns = batch.time_ns - round((batch.ticks - raw.start) * ns_per_tick)
        if from_ns <= time_ns < to_ns:
            if raw.text not in texts:
                texts[raw.text] = clean(raw.text)
            marks.append(MarkRecord(tid=raw.tid, time_ns=time_ns, text=texts[raw.text]))
    return marks


def _pick_span(batch: SlotBatch, from_ns: int, to_ns: int) -> SlotBatch:
    """Return the slots of a batch that touch a span, and some around it."""
    if not 1 <= batch.hz <= 1e12:
        return replace_records(batch, b"")
    data = slots(batch)
    picked = _new_uncleared("uint8_t[]", max(len(data), 1))
    count = lib.lt_pick_span(
        ffi.from_buffer("uint8_t[]", data),
        len(data) // event_ring.SIZE,
        _ticks_at(batch, from_ns, -_MARGIN),
        _ticks_at(batch, to_ns, _MARGIN),
        picked,
    )
    return replace_records(batch, bytes(ffi.buffer(picked, count * event_ring.SIZE)))


def _ticks_at(batch: SlotBatch, time_ns: int, margin: int) -> int:
    ticks = batch.ticks - round((batch.time_ns - time_ns) * (batch.hz / _NS)) + margin
    return min(max(ticks, 0), _MAX_TICKS)


def decode(batch: SlotBatch) -> Iterator[WaitRecord]:
    """Yield the waits and holds of a batch, in the order of the slots, without damaged ones.

    Raises:
        LocktopError: the packed slots are damaged.
    """
    if not 1 <= batch.hz <= 1e12:
        return
    ns_per_tick = _NS / batch.hz
    for raw in event_ring.decode(slots(batch))[0]:
        kind = KINDS.get(raw.kind & ~SHARED)
        if kind is None or event_ring.is_signal(raw):
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
            is_shared=bool(raw.kind & SHARED),
            is_release=event_ring.is_release(raw),
        )


def _signals(batch: SlotBatch) -> Iterator[SignalRecord]:
    if not batch.records:
        return
    for raw in event_ring.decode(slots(batch))[0]:
        kind = KINDS.get(raw.kind)
        if kind is not None and event_ring.is_signal(raw):
            yield SignalRecord(
                tid=raw.tid,
                lock=raw.lock,
                kind=kind,
                time_ns=batch.time_ns - round((batch.ticks - raw.start) * (_NS / batch.hz)),
                wakes_all=raw.type == _RECORD_BROADCAST,
            )
