"""The sums of one reading: the tables of all threads and dead threads, added up by the C reader."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from locktop.collector import native
from locktop.collector.native import ffi, lib
from locktop.collector.shm import layout
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.histograms import FIRST_LINES, LineSums
from locktop.collector.shm.kinds import CONTENDING
from locktop.collector.shm.layout import SiteSum, WaitBlock
from locktop.collector.shm.segment import SharedMemory

#: A shorter wait may end unobserved: its figures are not worth copying a table again.
_LONG_WAIT_S = 0.005
FIRST_SCRATCH = 1 << 18
FIRST_SITES = 1024
_FIRST_CHARGES = 4096
_FIRST_PACKED = 1 << 16
#: The msgpack header of an array of up to 2^32 - 1 elements; a count of four bytes follows.
_ARRAY32 = b"\xdd"
_ARRAY_SIZE = 5
_CONTENTION = sum(1 << number for number in CONTENDING)
_new_uncleared = ffi.new_allocator(should_clear_after_alloc=False)
_USES_AT = native.offset_of("struct lt_thread_sum", "uses")
_MAX_USES: int = lib.LT_USES
_BLOCK_WORDS = 3 * lib.LT_KINDS + 2
#: The fields of struct lt_thread_sum before the uses.
_THREAD_SUMS = struct.Struct(f"={_BLOCK_WORDS}QI")


class LockCharges(Struct):
    """The waits for one lock that are charged to holders."""

    packed: bytes  # struct lt_charge, one for each holder and stack
    by_stack: list[SiteSum]  # the same, summed over the living threads and over the ended ones


class ScratchBuffer:
    """Room for the copy of one thread's tables, for the charges of all threads, and for packed
    threads.

    All may be large, so readings share them.
    """

    def __init__(self) -> None:
        self.size = 0
        self.charges: Any = None
        self.charge_capacity = 0
        self.reserve(FIRST_SCRATCH)
        self.reserve_charges(_FIRST_CHARGES, 0)
        self.packed: Any = None
        self.packed_capacity = 0
        self.reserve_packed(_FIRST_PACKED, 0)
        self.line_capacity = FIRST_LINES  # of the last reading

    def reserve(self, size: int) -> None:
        """Make room for at least ``size`` bytes."""
        if size > self.size:
            self.bytes, self.size = _new_uncleared("uint8_t[]", size), size

    def reserve_charges(self, capacity: int, used: int) -> None:
        """Make room for at least ``capacity`` charges; the first ``used`` stay."""
        if capacity <= self.charge_capacity:
            return
        charges = _new_uncleared("struct lt_charge[]", capacity)
        if used:
            ffi.memmove(charges, self.charges, used * layout.CHARGE.size)
        self.charges, self.charge_capacity = charges, capacity

    def reserve_packed(self, capacity: int, used: int) -> None:
        """Make room for at least ``capacity`` bytes of packed threads; the first ``used`` stay."""
        if capacity <= self.packed_capacity:
            return
        packed = _new_uncleared("uint8_t[]", capacity)
        if used:
            ffi.memmove(packed, self.packed, used)
        self.packed, self.packed_capacity = packed, capacity


class TableSums:
    """The sums by lock and by call site, while one reading is made.

    ``args`` is the struct lt_thread_read that the C reader works on. ``block`` is the struct
    lt_thread of the thread that was read last.
    """

    def __init__(
        self,
        memory: SharedMemory,
        clock: Clock,
        scratch: ScratchBuffer,
        lock_count: int,
        mode: int = 0,
        reads_lines: bool = True,
    ) -> None:
        """Args:
        memory, clock: of the file.
        scratch: room that the readings share.
        lock_count: sums by lock id, for the ids below.
        mode: see Control.
        reads_lines: whether to read the lines of the histograms.
        """
        self._memory = memory
        self._scratch = scratch
        self.lock_count = lock_count
        self.by_lock = bytearray(lock_count * layout.LOCK_SUM_SIZE)
        self.by_lock_pointer = ffi.from_buffer("struct lt_lock_sum[]", self.by_lock)
        self.args = ffi.new("struct lt_thread_read *")
        self._file = memory.mapping()  # stays while C code may copy from it
        self.args.file, self.args.clock = self._file, clock.kind
        self.args.long_wait = clock.ticks(_LONG_WAIT_S)
        self.args.scratch_max = memory.max_bytes
        self.args.sums, self.args.sum_count = self.by_lock_pointer, lock_count
        self.args.mode, self.args.contention = mode, _CONTENTION
        self.args.skips_lines = not reads_lines
        self.block = ffi.buffer(ffi.addressof(self.args, "block"))
        self._thread_sum = ffi.buffer(ffi.addressof(self.args, "sum"))
        self._sites = self.args.sites
        self._set_scratch(0)
        self._set_sites(FIRST_SITES)
        self._set_charges(0)
        self.lines = (
            LineSums(self.args, self.by_lock_pointer, scratch.line_capacity)
            if reads_lines
            else None
        )
        self.args.packed_size = _ARRAY_SIZE
        self._set_packed(0)

    @property
    def refused(self) -> int:
        """The number of table slots left out, because their lock or kind does not exist."""
        return int(self.args.refused)

    def _set_scratch(self, size: int) -> None:
        self._scratch.reserve(size)
        self.args.scratch, self.args.scratch_size = self._scratch.bytes, self._scratch.size

    def _set_sites(self, capacity: int) -> None:
        self._table = ffi.new("struct lt_site_sum[]", capacity)
        self._used = ffi.new("uint32_t *")
        self._sites.table, self._sites.capacity, self._sites.used = self._table, capacity, 0

    def _set_charges(self, capacity: int) -> None:
        scratch, sites = self._scratch, self._sites
        scratch.reserve_charges(capacity, int(sites.charge_count))
        sites.charges, sites.charge_capacity = scratch.charges, scratch.charge_capacity

    def _set_packed(self, capacity: int) -> None:
        scratch, args = self._scratch, self.args
        scratch.reserve_packed(capacity, int(args.packed_size))
        args.packed, args.packed_capacity = scratch.packed, scratch.packed_capacity

    def wait(self) -> WaitBlock | None:
        """Return the wait of the thread that was read last."""
        wait = layout.WAIT.unpack(self.block, layout.WAIT_AT)
        return wait if wait.key and not wait.seq & 1 else None

    def thread_sums(self) -> tuple[int, ...]:
        """Return the sums of the thread that was read last.

        These are its acquisitions, its contended ones and its wait ticks, each by kind. Then follow
        ``counted`` and ``left_out`` of struct lt_thread_sum, and the number of its uses.
        """
        return _THREAD_SUMS.unpack_from(self._thread_sum)

    def uses(self, count: int) -> bytes:
        """Return the struct lt_use of the thread that was read last."""
        if not count:
            return b""
        end = _USES_AT + min(count, _MAX_USES) * layout.USE.size
        return bytes(self._thread_sum[_USES_AT:end])

    @property
    def lines_left_out(self) -> int:
        """The waits and holds of living threads that found no room in a histogram."""
        return int(self.args.lines.left_out)

    def waits(self) -> bytes | None:
        """Return the waits in contention of the thread that was read last (PackedHistogram).

        None: the lines are not read.
        """
        if self.lines is None:
            return None
        return self.lines.last_thread_histogram() if self.args.sum.counted else b""

    def changed_threads(self, offsets: Any, seen: Any, now: Any, rings: Any) -> Iterator[int]:
        """Add the tables of all threads to the sums.

        Packs each thread that differs from its entry in ``seen``. Yields the index of each of them
        that is too large for that, while ``args`` and ``block`` have that thread.

        Args: those of lt_read_threads().
        Raises: LocktopError for a damaged thread.
        """
        args, count = self.args, len(offsets)
        args.next = 0
        while result := lib.lt_read_threads(args, offsets, count, seen, now, rings):
            if result == lib.LT_READ_CHANGED:
                yield args.next - 1
            elif result == lib.LT_READ_MORE_SCRATCH:
                self._set_scratch(int(args.scratch_needed) * 5 // 4)
            elif result == lib.LT_READ_MORE_SITES:
                self._grow_sites()
            elif result == lib.LT_READ_MORE_CHARGES:
                self._set_charges(4 * int(self._sites.charge_capacity))
            elif result == lib.LT_READ_MORE_PACKED:
                self._set_packed(2 * int(args.packed_capacity))
            elif result == lib.LT_READ_MORE_LINES and self.lines:
                self._scratch.line_capacity = self.lines.grow()
            else:
                raise self._memory.broken("a thread's tables are not where they should be")

    def packed_threads(self) -> Any:
        """Return the packed threads, a msgpack array. The next reading overwrites the buffer."""
        args = self.args
        head = _ARRAY32 + int(args.packed_count).to_bytes(4, "big")
        ffi.memmove(args.packed, head, _ARRAY_SIZE)
        return ffi.buffer(args.packed, args.packed_size)

    def add_sites(self, packed: bytes) -> None:
        """Add packed struct lt_site_sum. Those with blame are the sums of charges."""
        if not packed:
            return
        sites, used = self._sites, self._used
        sums = ffi.from_buffer("struct lt_site_sum[]", packed)
        count = len(packed) // layout.SITE_SUM.size
        while True:
            used[0] = sites.used
            if lib.lt_fold_site_sums(sums, count, sites.table, sites.capacity, used):
                sites.used = used[0]
                return
            self._grow_sites()

    def add_charges(self, packed: bytes) -> None:
        """Add packed struct lt_charge, without their sums."""
        if not packed:
            return
        sites, count = self._sites, len(packed) // layout.CHARGE.size
        self._set_charges(int(sites.charge_count) + count)
        ffi.memmove(sites.charges + int(sites.charge_count), packed, len(packed))
        sites.charge_count += count

    def _grow_sites(self) -> None:
        old, count = self._table, int(self._sites.capacity)
        self._set_sites(4 * count)
        lib.lt_fold_site_sums(old, count, self._table, self._sites.capacity, self._used)
        self._sites.used = self._used[0]

    def sites_by_lock(self) -> tuple[dict[int, list[SiteSum]], dict[int, LockCharges]]:
        """Return the waits by lock, the longest first, and the charges by lock."""
        count = lib.lt_sort_sites(self._table, self._sites.capacity)
        waits: dict[int, list[SiteSum]] = {}
        blame: dict[int, list[SiteSum]] = {}
        for site in layout.SITE_SUM.each(ffi.buffer(self._table, count * layout.SITE_SUM.size)):
            (blame if site.blame else waits).setdefault(site.lock, []).append(site)
        return waits, self._charges_of(blame)

    def _charges_of(self, by_stack: dict[int, list[SiteSum]]) -> dict[int, LockCharges]:
        charges, count = self._sites.charges, int(self._sites.charge_count)
        if not by_stack or not count:
            return {}
        ends = ffi.new("uint32_t[]", self.lock_count)
        by_lock = _new_uncleared("struct lt_charge[]", count)
        lib.lt_group_charges(charges, count, ends, self.lock_count, by_lock)
        packed, size = ffi.buffer(by_lock), layout.CHARGE.size
        return {
            lock: LockCharges(
                packed=packed[size * (ends[lock - 1] if lock else 0) : size * ends[lock]],
                by_stack=sums,
            )
            for lock, sums in by_stack.items()
            if lock < self.lock_count
        }
