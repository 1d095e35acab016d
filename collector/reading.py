"""One reading of the shared memory: what the target's counters said, in ticks and ids.

The writer never waits for a reader, so a reading checks afterwards whether what it copied
belonged together, and copies again what did not (the rules stand in abi.h).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from locktop.collector import abi
from locktop.collector.abi import HeldEntry, LockRow, Site, ThreadBlock, WaitBlock, ffi, lib
from locktop.collector.clock import Clock
from locktop.collector.shm import MOST_LOCKS, MOST_THREADS, GrowingArray, SharedMemory

#: Rows handed to Python; locks that nobody waited for are left out first.
MOST_ROWS = 5_000
_MOST_SLOTS = 1 << 20
_MOST_HELD = 1 << 16
_MOST_RETIRED_SITES = 10_000
_ATTEMPTS = 4
#: Locks that may appear while the threads are read; those beyond wait for the next look.
_NEW_LOCKS = 4096
#: A wait shorter than this may end unseen: what it adds is not worth copying a table again.
_LONG_WAIT_S = 0.005
#: What a thread's mode says while the library works for it.
_MODE_BUSY = 0xFFFFFFFF
_BLOCK_HEAD = abi.OTHER_AT + abi.SLOT_SIZE
_OTHER_EMPTY = bytes(8 * 10)
_OTHER_COUNTS_AT = abi.OTHER_AT + abi.offset_of("struct lt_slot", "counts")
_OTHER_LOCK_AT = abi.OTHER_AT + abi.offset_of("struct lt_slot", "lock")
_SUM = struct.Struct(f"={3 * lib.LT_KINDS}Q")
_NO_TOTALS = bytes(abi.THREAD_SUM_SIZE)
_SITE = struct.Struct("=IIQQQ")
_LIVING = frozenset({lib.LT_THREAD_LIVE, lib.LT_THREAD_EXITING})


@dataclass(slots=True)
class RawThread:
    """One thread block. The three tuples are by kind (enum lt_kind)."""

    index: int
    block: ThreadBlock
    wait: WaitBlock | None
    held: tuple[HeldEntry, ...]
    now: int  # the target's clock when this thread was read
    acquisitions: tuple[int, ...]
    contended: tuple[int, ...]
    wait_ticks: tuple[int, ...]


@dataclass(slots=True)
class Reading:
    """Everything one reading found."""

    header: abi.Header
    control: abi.Control
    now: int
    threads: list[RawThread]
    rows: list[LockRow]
    sites: dict[int, list[Site]]  # by lock, most wait first; waits going on not included
    left_out: int = 0
    torn: bool = False  # threads ended all the while: their figures may be off
    notes: list[str] = field(default_factory=list)


class Reader:
    """Reads one file again and again; keeps the sums of the last reading for the changes."""

    def __init__(self, memory: SharedMemory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock
        self.threads = GrowingArray(memory, abi.THREADS_AT, abi.THREAD.size, MOST_THREADS)
        self._locks = GrowingArray(memory, abi.LOCKS_AT, abi.LOCK_SIZE, MOST_LOCKS)
        self._before = bytearray()
        self._before_count = 0
        self._set_scratch(1 << 16)
        self._rows = ffi.new("struct lt_lock_row[]", MOST_ROWS)
        self._retired_sites: dict[int, tuple[int, bytes]] = {}
        self._retired_at = -1
        self._mode = 0

    def read(self) -> Reading:
        """Return what the file says now. Raises LocktopError for a damaged file."""
        for attempt in range(_ATTEMPTS):
            before = self._memory.retire_seq()
            if before & 1 and attempt < _ATTEMPTS - 1:
                continue
            self._mode = self._memory.control().mode
            cycle = _Cycle(self._read_locks_count() + _NEW_LOCKS)
            self._read_threads(cycle)
            count = min(self._read_locks(cycle), cycle.sum_count)
            torn = bool(before & 1) or self._memory.retire_seq() != before
            if not torn:
                break
        self._forget_retired_sites(before)
        return self._finished(cycle, count, torn)

    def read_threads(self) -> list[RawThread]:
        """Return the threads alone, for a second look at who waits for whom."""
        self._mode = self._memory.control().mode
        cycle = _Cycle(self._read_locks_count() + _NEW_LOCKS)
        self._read_threads(cycle)
        return cycle.threads

    def _read_locks_count(self) -> int:
        self._locks.refresh()
        return self._locks.count

    def _read_locks(self, cycle: _Cycle) -> int:
        self._locks.refresh()
        self._locks.copy()
        lib.lt_fold_retired(
            ffi.from_buffer(self._locks.data),
            self._locks.count * abi.LOCK_SIZE,
            0,
            cycle.sums_pointer,
            cycle.sum_count,
        )
        return self._locks.count

    # ---- threads ----

    def _read_threads(self, cycle: _Cycle) -> None:
        self.threads.refresh()
        view = self.threads.copy()
        for index in range(self.threads.count):
            at = index * abi.THREAD.size
            block = abi.THREAD.at(view, at)
            if block.state in _LIVING and block.tid:
                thread = self._read_thread(cycle, index, block, view[at : at + abi.THREAD.size])
                if thread is not None:
                    cycle.threads.append(thread)

    def _read_thread(
        self, cycle: _Cycle, index: int, block: ThreadBlock, data: memoryview
    ) -> RawThread | None:
        at = self.threads.offset(index)
        held = self._held(block, at, data)
        first, wait = block, abi.WAIT.at(data, abi.WAIT_AT)
        for _ in range(_ATTEMPTS):
            now = self._clock.now()
            slots, sites = self._copy_tables(block)
            head = bytearray(self._memory.read(at, _BLOCK_HEAD))
            after, wait_after = abi.THREAD.at(head), abi.WAIT.at(head, abi.WAIT_AT)
            if (after.birth, after.state in _LIVING) != (first.birth, True):
                return None  # retired meanwhile, which the retire count shows
            settled = after.table_seq == block.table_seq and not after.table_seq & 1
            if settled and not self._long_wait_ended(wait, wait_after, now):
                break
            block, wait = after, wait_after
        sums = cycle.fold(self._scratch_pointer, slots, sites, _other_slot(head))
        if wait_after != wait:
            wait_after = self._settled_wait(at, wait_after)
        waiting = bool(wait_after.key) and not wait_after.seq & 1
        if not waiting and after.mode not in (self._mode, _MODE_BUSY):
            held = ()  # it has not seen the present epoch: releases may have been missed
        return RawThread(index, after, wait_after if waiting else None, held, now, *sums)

    def _settled_wait(self, at: int, seen: WaitBlock) -> WaitBlock:
        """A copy is not taken at one moment: only two equal ones are of one wait."""
        for _ in range(_ATTEMPTS):
            again = abi.WAIT.at(self._memory.read(at + abi.WAIT_AT, abi.WAIT.size))
            if again == seen:
                return seen
            seen = again
        return seen._replace(key=0)

    def _long_wait_ended(self, wait: WaitBlock, after: WaitBlock, now: int) -> bool:
        """Its time went into the tables, perhaps after they were copied."""
        if not wait.key or wait.seq == after.seq:
            return False
        return self._clock.seconds(now - wait.since) > _LONG_WAIT_S

    def _copy_tables(self, block: ThreadBlock) -> tuple[int, int]:
        """Copy the slots and the sites to the scratch; return how many bytes they take."""
        slots = self._capacity(block.slot_capacity, block.slots) * abi.SLOT_SIZE
        sites = self._capacity(block.site_capacity, block.sites) * abi.SITE.size
        if slots + sites > len(self._scratch):
            self._set_scratch(2 * (slots + sites))
        if slots:
            self._memory.read_into(self._scratch_view[:slots], block.slots)
        if sites:
            self._memory.read_into(self._scratch_view[slots : slots + sites], block.sites)
        return slots, sites

    def _set_scratch(self, size: int) -> None:
        self._scratch = bytearray(size)
        self._scratch_view = memoryview(self._scratch)
        self._scratch_pointer = ffi.from_buffer("uint8_t[]", self._scratch)

    def _capacity(self, capacity: int, offset: int) -> int:
        if capacity > _MOST_SLOTS:
            raise self._memory.broken(f"a table of {capacity} entries")
        return capacity if offset else 0

    def _held(self, block: ThreadBlock, at: int, data: memoryview) -> tuple[HeldEntry, ...]:
        count = min(min(block.held_top, block.held_size) // abi.HELD.size, _MOST_HELD)
        if not count or not block.held:
            return ()
        start = block.held - at
        if not 0 <= start <= abi.THREAD.size - count * abi.HELD.size:  # moved to a larger list
            data = memoryview(self._memory.read(block.held, count * abi.HELD.size))
            start = 0
        entries = [abi.HELD.at(data, start + i * abi.HELD.size) for i in range(count)]
        return tuple(
            entry if entry.flags & lib.LT_HELD_TIMED else entry._replace(since=0)
            for entry in entries
            if entry.key
        )

    # ---- locks ----

    def _finished(self, cycle: _Cycle, count: int, torn: bool) -> Reading:
        wanted = bytearray(max(count, 1))
        for thread in cycle.threads:
            for lock in (
                *(h.lock for h in thread.held),
                *([thread.wait.lock] if thread.wait else []),
            ):
                if lock < count:
                    wanted[lock] = 1
        rows, left_out = self._pick(cycle, count, wanted)
        for row in rows:
            if row.sites:
                cycle.fold_sites(self._sites_of_ended(row))
        for thread in cycle.threads:
            cycle.fold_sites(_waits_to_be_recorded(thread))
        self._before, self._before_count = cycle.sums, count
        return Reading(
            header=self._memory.header(),
            control=self._memory.control(),
            now=self._clock.now(),
            threads=cycle.threads,
            rows=rows,
            sites=cycle.sites_by_lock(),
            left_out=left_out,
            torn=torn,
            notes=["some of a thread's figures were damaged"] if cycle.refused else [],
        )

    def _pick(self, cycle: _Cycle, count: int, wanted: bytearray) -> tuple[list[LockRow], int]:
        left_out = ffi.new("uint32_t *")
        before = ffi.from_buffer("struct lt_lock_sum[]", self._before)
        written = lib.lt_pick_locks(
            ffi.from_buffer(self._locks.data),
            count,
            cycle.sums_pointer,
            before,
            self._before_count,
            ffi.from_buffer("uint8_t[]", wanted),
            self._rows,
            MOST_ROWS,
            left_out,
        )
        data = memoryview(ffi.buffer(self._rows, written * abi.LOCK_ROW.size))
        rows = [abi.LOCK_ROW.at(data, i * abi.LOCK_ROW.size) for i in range(written)]
        return rows, int(left_out[0])

    # ---- where waits of ended threads came from ----

    def _forget_retired_sites(self, retire_seq: int) -> None:
        if retire_seq != self._retired_at or retire_seq & 1:
            self._retired_sites.clear()
            self._retired_at = retire_seq

    def _sites_of_ended(self, row: LockRow) -> bytes:
        known = self._retired_sites.get(row.lock)
        if known is None or known[0] != row.sites:
            known = (row.sites, self._walk_retired_sites(row))
            self._retired_sites[row.lock] = known
        return known[1]

    def _walk_retired_sites(self, row: LockRow) -> bytes:
        packed, at = [], row.sites
        for _ in range(_MOST_RETIRED_SITES):
            if not at:
                break
            site = abi.RETIRED_SITE.at(self._memory.read(at, abi.RETIRED_SITE.size))
            packed.append(_SITE.pack(row.lock, site.stack, site.count, site.wait_ticks, 0))
            at = site.next
        return b"".join(packed)


class _Cycle:
    """The sums of one reading while it is made."""

    def __init__(self, sum_count: int) -> None:
        self.sum_count = sum_count
        self.sums = bytearray(sum_count * abi.LOCK_SUM_SIZE)
        self.sums_pointer = ffi.from_buffer("struct lt_lock_sum[]", self.sums)
        self.threads: list[RawThread] = []
        self.refused = 0
        self._totals = ffi.new("struct lt_thread_sum *")
        self._totals_view = ffi.buffer(self._totals)
        self._capacity = 1024
        self._sites = ffi.new("struct lt_site[]", self._capacity)
        self._used = ffi.new("uint32_t *")

    def fold(
        self, tables: Any, slots: int, sites: int, other: bytearray | None
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Add a thread's tables, ``slots`` bytes and then ``sites`` bytes, to the sums; return its
        figures by kind."""
        self._totals_view[:] = _NO_TOTALS
        self.refused += self._fold_slots(tables, slots)
        if other is not None:
            self.refused += self._fold_slots(ffi.from_buffer(other), len(other))
        if sites:
            self._fold_sites(tables + slots, sites)
        values = _SUM.unpack(self._totals_view)
        kinds = lib.LT_KINDS
        return values[:kinds], values[kinds : 2 * kinds], values[2 * kinds :]

    def _fold_slots(self, slots: Any, size: int) -> int:
        return int(lib.lt_fold_slots(slots, size, self.sums_pointer, self.sum_count, self._totals))

    def fold_sites(self, sites: bytes) -> None:
        """Add waits by lock and stack."""
        if sites:
            self._fold_sites(ffi.from_buffer(sites), len(sites))

    def _fold_sites(self, sites: Any, size: int) -> None:
        while not lib.lt_fold_sites(sites, size, self._sites, self._capacity, self._used):
            self._grow_sites()

    def _grow_sites(self) -> None:
        old, size = self._sites, self._capacity * abi.SITE.size
        self._capacity *= 4
        self._sites, self._used = ffi.new("struct lt_site[]", self._capacity), ffi.new("uint32_t *")
        lib.lt_fold_sites(old, size, self._sites, self._capacity, self._used)

    def sites_by_lock(self) -> dict[int, list[Site]]:
        """Return the waits by lock, most wait first."""
        count = lib.lt_sort_sites(self._sites, self._capacity)
        by_lock: dict[int, list[Site]] = {}
        for values in _SITE.iter_unpack(ffi.buffer(self._sites, count * abi.SITE.size)):
            by_lock.setdefault(values[0], []).append(Site._make(values))
        return by_lock


def _other_slot(head: bytearray) -> bytearray | None:
    """Return the slot of "other locks" with a key, which it has none of in the file."""
    if head[_OTHER_COUNTS_AT : _OTHER_COUNTS_AT + len(_OTHER_EMPTY)] == _OTHER_EMPTY:
        return None
    key = lib.LT_KIND_MUTEX << lib.LT_KIND_SHIFT
    head[abi.OTHER_AT : abi.OTHER_AT + 8] = struct.pack("=Q", key)
    head[_OTHER_LOCK_AT : _OTHER_LOCK_AT + 4] = bytes(4)
    return head[abi.OTHER_AT : abi.OTHER_AT + abi.SLOT_SIZE]


def _waits_to_be_recorded(thread: RawThread) -> bytes:
    """A contended acquisition is counted at once, but where it came from only after the release."""
    if not thread.held:
        return b""
    return b"".join(
        _SITE.pack(held.lock, held.stack, 1, held.wait_ticks, held.wait_ticks)
        for held in thread.held
        if held.flags & lib.LT_HELD_CONTENDED and held.stack
    )
