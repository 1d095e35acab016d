"""Folds waits into cells of time in C (``native/reader/cells.c``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from locktop.collector.extensions.report.incident import CellSeries
from locktop.collector.model import Kind, TimedWait
from locktop.collector.native import ffi, lib
from locktop.collector.shm import event_ring, slot_batch
from locktop.collector.shm.kinds import KINDS
from locktop.collector.shm.slot_batch import SlotBatch

#: Entries after which equal ones are added up, and the most that a report has: 320 MB.
MERGED, MAX_ENTRIES = 1 << 20, 1 << 23
_NUMBER_SIZE = 4
#: A stranger's recording may have later times, and larger tids.
_LATEST_NS, _TID = 1 << 62, (1 << 32) - 1
_NS = 1_000_000_000
_SIZE: int = ffi.sizeof("struct lt_wait_cells")
_NUMBERS = {kind: number for number, kind in KINDS.items()}
_new_uncleared = ffi.new_allocator(should_clear_after_alloc=False)


class FoldedSeries(Struct, frozen=True):
    """The cells of one lock, thread and stack. See lt_pack_cells() for steps and values."""

    series: CellSeries
    kind: Kind
    steps: bytes  # numbers of 32 bits, little-endian
    values: bytes


class CellFolder:
    """Adds up waits by cell, lock, thread and stack."""

    def __init__(self, from_ns: int, to_ns: int, cell_ns: int) -> None:
        """Args:
        from_ns: the begin of the first cell, nanoseconds since 1970.
        to_ns: the end of the span, which may cut the last cell.
        cell_ns: the length of a cell: less than 2^31 cells are in the span.
        """
        self._window = ffi.new("struct lt_cell_window *", (from_ns, to_ns, cell_ns))
        self._merged = b""  # entries that are added up
        self._parts: list[bytes] = []  # others
        self._size = 0  # bytes of the others
        self.is_full = False  # later waits are left out: there are too many entries

    def add_batch(self, batch: SlotBatch) -> None:
        """Add the waits of ring records, idle ones too. Raises LocktopError for damaged ones."""
        if not (1 <= batch.hz <= 1e12 and 0 <= batch.ticks < 1 << 64):
            return
        if not 0 <= batch.time_ns < _LATEST_NS:
            return
        data = slot_batch.slots(batch)
        count = len(data) // event_ring.SIZE
        clock = ffi.new("struct lt_tick_clock *", (batch.ticks, batch.time_ns, _NS / batch.hz))
        waits = _new_uncleared("struct lt_timed_wait[]", max(1, count))
        source = ffi.from_buffer("uint8_t[]", data)
        self._split(waits, lib.lt_time_waits(source, count, clock, waits))

    def add_waits(self, waits: Iterable[TimedWait]) -> None:
        """Add waits in contention; those for work are left out."""
        records = [
            wait.record
            for wait in waits
            if not wait.idle and wait.record.wait_ns and wait.record.began_ns < _LATEST_NS
        ]
        raw = ffi.new(
            "struct lt_timed_wait[]",
            [
                (
                    max(0, record.began_ns),
                    min(max(0, record.got_ns), _LATEST_NS),
                    record.lock,
                    record.stack,
                    record.tid & _TID,
                    _NUMBERS[record.kind],
                )
                for record in records
            ],
        )
        self._split(raw, len(records))

    def _split(self, waits: Any, count: int) -> None:
        if self.is_full or not count:
            return
        cells = _new_uncleared("struct lt_wait_cells[]", count * lib.LT_CELLS_OF_WAIT)
        number = lib.lt_split_waits(waits, count, self._window, cells)
        self._parts.append(bytes(ffi.buffer(cells, number * _SIZE)))
        self._size += number * _SIZE
        # As many as are added up already: so the time grows with the number of waits.
        if self._size >= max(MERGED * _SIZE, len(self._merged)):
            self._merge()
            self.is_full = len(self._merged) >= MAX_ENTRIES * _SIZE

    def _merge(self) -> None:
        data = bytearray().join([self._merged, *self._parts])
        cells = ffi.from_buffer("struct lt_wait_cells[]", data)
        count = lib.lt_merge_cells(cells, len(data) // _SIZE)
        self._merged = bytes(ffi.buffer(cells, count * _SIZE))
        self._parts, self._size = [], 0

    def folded(self) -> Iterator[FoldedSeries]:
        """Yield the series in order of lock, thread, stack and kind."""
        self._merge()
        cells = ffi.from_buffer("struct lt_wait_cells[]", self._merged)
        count = len(self._merged) // _SIZE
        begin = 0
        while begin < count:
            end = lib.lt_series_end(cells, count, begin)
            first, number = cells[begin], end - begin
            steps = _new_uncleared("uint32_t[]", number)
            values = _new_uncleared("uint32_t[]", number)
            entries = lib.lt_pack_cells(cells + begin, number, steps, values)
            kind = KINDS.get(first.kind)
            if entries and kind is not None:
                yield FoldedSeries(
                    series=CellSeries(
                        lock=first.lock, tid=first.tid, stack=first.stack, count=entries
                    ),
                    kind=kind,
                    steps=bytes(ffi.buffer(steps, entries * _NUMBER_SIZE)),
                    values=bytes(ffi.buffer(values, entries * _NUMBER_SIZE)),
                )
            begin = end
