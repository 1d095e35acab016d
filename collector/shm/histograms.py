"""The histograms of one reading, which the C reader sums up by lock."""

from __future__ import annotations

from typing import Any

from locktop.collector.native import ffi, lib
from locktop.collector.shm import layout

#: Room for the lines of a program of usual size, in struct lt_line_sum.
FIRST_LINES = 1024
WAITS: int = lib.LT_LINE_WAITS
HOLDS: int = lib.LT_LINE_HOLDS
BUCKETS: int = lib.LT_BUCKETS
_new_uncleared = ffi.new_allocator(should_clear_after_alloc=False)


class LineSums:
    """The lines of all locks of one reading."""

    def __init__(self, args: Any, by_lock: Any, capacity: int) -> None:
        """Args:
        args: the struct lt_thread_read of the reading.
        by_lock: its struct lt_lock_sum of all locks, which has to stay as long as the lines.
        capacity: room for so many lines at first.
        """
        self._by_lock = by_lock
        self._args, self._sums = args, args.lines
        self._of_locks = ffi.new("struct lt_lines_of_locks *")
        self._of_locks.lines = ffi.addressof(self._sums)
        self._of_locks.sums, self._of_locks.count = by_lock, args.sum_count
        self._packed_parts: dict[tuple[int, int], bytes] = {}  # by lock and part
        self._set_table(_new_uncleared("struct lt_line_sum[]", capacity), capacity)
        self._counts = ffi.new("uint64_t[]", BUCKETS)
        self._buckets = ffi.new("uint8_t[]", BUCKETS)

    def _set_table(self, table: Any, capacity: int) -> None:
        self._table = table  # the struct has the address alone
        self._sums.table, self._sums.capacity = table, capacity

    def grow(self) -> int:
        """Make room for more lines; return for how many in all."""
        capacity = 4 * int(self._sums.capacity)
        table = _new_uncleared("struct lt_line_sum[]", capacity)
        used = int(self._sums.used)
        ffi.memmove(table, self._table, used * layout.LINE_SUM_SIZE)
        self._set_table(table, capacity)
        return capacity

    def add_ended(self, lines: Any, count: int) -> int:
        """Add the lines of ended threads: ``count`` struct lt_line_sum.

        Returns:
            The number of lines that were left out because their lock does not exist.
        """
        while not lib.lt_lines_fit(ffi.addressof(self._sums), count):
            self.grow()
        args, size = self._args, count * layout.LINE_SUM_SIZE
        sums = ffi.addressof(self._sums)
        return int(lib.lt_fold_retired_lines(lines, size, args.sums, args.sum_count, sums))

    @property
    def lock_lines(self) -> Any:
        """The struct lt_lines_of_locks for lt_pick_locks()."""
        return self._of_locks

    def packed_histogram(self, lock: int, part: int) -> bytes:
        """Return the waits (``WAITS``) or holds (``HOLDS``) of a lock, see PackedHistogram."""
        packed = self._packed_parts.get((lock, part))
        if packed is None and lock < self._of_locks.count:
            count = lib.lt_pick_histogram(
                self._of_locks.lines, self._by_lock + lock, part, self._counts, self._buckets
            )
            packed = self._packed_parts[lock, part] = self._pick(count)
        return packed or b""

    def last_thread_histogram(self) -> bytes:
        """Return the waits in contention of the thread that was read last, in the same form."""
        ffi.memmove(self._counts, self._sums.waits, 8 * BUCKETS)
        return self._pick(lib.lt_pick_counts(self._counts, self._buckets))

    def _pick(self, count: int) -> bytes:
        return b"".join((ffi.buffer(self._buckets, count), ffi.buffer(self._counts, 8 * count)))
