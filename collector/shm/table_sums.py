"""The sums of one reading: the tables of all threads and dead threads, added up by the C reader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from locktop.collector import native
from locktop.collector.native import ffi, lib
from locktop.collector.shm import layout
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.layout import SiteSum, WaitBlock
from locktop.collector.shm.segment import SharedMemory

#: A shorter wait may end unobserved: its figures are not worth copying a table again.
_LONG_WAIT_S = 0.005
FIRST_SCRATCH = 1 << 18
FIRST_SITES = 1024
_new_uncleared = ffi.new_allocator(should_clear_after_alloc=False)
_USES_AT = native.offset_of("struct lt_thread_sum", "uses")
_MAX_USES: int = lib.LT_USES


class ScratchBuffer:
    """Room for the copy of one thread's tables. The buffer may be large, so readings share it."""

    def __init__(self) -> None:
        self.size = 0
        self.reserve(FIRST_SCRATCH)

    def reserve(self, size: int) -> None:
        """Make room for at least ``size`` bytes."""
        if size > self.size:
            self.bytes, self.size = _new_uncleared("uint8_t[]", size), size


class TableSums:
    """The sums by lock and by call site, while one reading is made.

    ``args`` is the struct lt_thread_read that the C reader works on. ``block`` is the struct
    lt_thread of the thread that was read last.
    """

    def __init__(
        self, memory: SharedMemory, clock: Clock, scratch: ScratchBuffer, lock_count: int
    ) -> None:
        """``lock_count``: sums by lock id, for the ids below."""
        self._memory = memory
        self._scratch = scratch
        self.lock_count = lock_count
        self.by_lock = bytearray(lock_count * layout.LOCK_SUM_SIZE)
        self.by_lock_pointer = ffi.from_buffer("struct lt_lock_sum[]", self.by_lock)
        self.args = ffi.new("struct lt_thread_read *")
        self.args.fd, self.args.clock = memory.fd, clock.kind
        self.args.long_wait = clock.ticks(_LONG_WAIT_S)
        self.args.scratch_max = memory.max_bytes
        self.args.sums, self.args.sum_count = self.by_lock_pointer, lock_count
        self.block = ffi.buffer(ffi.addressof(self.args, "block"))
        self._wait = ffi.addressof(self.args, "block", "wait")
        self._thread_sum = ffi.buffer(ffi.addressof(self.args, "sum"))
        self._set_scratch(0)
        self._set_sites(FIRST_SITES)

    @property
    def refused(self) -> int:
        """The number of table slots left out, because their lock or kind does not exist."""
        return int(self.args.refused)

    def _set_scratch(self, size: int) -> None:
        self._scratch.reserve(size)
        self.args.scratch, self.args.scratch_size = self._scratch.bytes, self._scratch.size

    def _set_sites(self, capacity: int) -> None:
        self._sites = ffi.new("struct lt_site_sum[]", capacity)
        self._used = ffi.new("uint32_t *")
        self.args.sites, self.args.site_capacity, self.args.site_used = self._sites, capacity, 0

    def wait(self) -> WaitBlock | None:
        """Return the wait of the thread that was read last."""
        if self._wait.key == 0 or self._wait.seq & 1:
            return None
        return layout.WAIT.at(self.block, layout.WAIT_AT)

    def uses(self, count: int) -> bytes:
        """Return the struct lt_use of the thread that was read last."""
        end = _USES_AT + min(count, _MAX_USES) * layout.USE.size
        return bytes(self._thread_sum[_USES_AT:end])

    def changed_threads(self, blocks: Any, offsets: Any, seen: Any, now: Any) -> Iterator[int]:
        """Add the tables of all threads to the sums.

        Yields the index of each thread that differs from its entry in ``seen``, while ``args`` and
        ``block`` have that thread.

        Args: those of lt_read_threads().
        Raises: LocktopError for a damaged thread.
        """
        args, count = self.args, len(offsets)
        args.next = 0
        while result := lib.lt_read_threads(args, blocks, offsets, count, seen, now):
            if result == lib.LT_READ_CHANGED:
                yield args.next - 1
            elif result == lib.LT_READ_MORE_SCRATCH:
                self._set_scratch(int(args.scratch_needed) * 5 // 4)
            elif result == lib.LT_READ_MORE_SITES:
                self._grow_sites()
            else:
                raise self._memory.broken("a thread's tables are not where they should be")

    def add_sites(self, packed: bytes) -> None:
        """Add packed struct lt_site_sum."""
        if not packed:
            return
        args, used = self.args, self._used
        sums = ffi.from_buffer("struct lt_site_sum[]", packed)
        count = len(packed) // layout.SITE_SUM.size
        while True:
            used[0] = args.site_used
            if lib.lt_fold_site_sums(sums, count, args.sites, args.site_capacity, used):
                args.site_used = used[0]
                return
            self._grow_sites()

    def _grow_sites(self) -> None:
        old, count = self._sites, int(self.args.site_capacity)
        self._set_sites(4 * count)
        lib.lt_fold_site_sums(old, count, self._sites, self.args.site_capacity, self._used)
        self.args.site_used = self._used[0]

    def sites_by_lock(self) -> tuple[dict[int, list[SiteSum]], dict[int, list[SiteSum]]]:
        """Return the waits by lock, and the blame by lock; each list has the longest wait first."""
        count = lib.lt_sort_sites(self._sites, self.args.site_capacity)
        waits: dict[int, list[SiteSum]] = {}
        blame: dict[int, list[SiteSum]] = {}
        for site in layout.SITE_SUM.each(ffi.buffer(self._sites, count * layout.SITE_SUM.size)):
            (blame if site.blame else waits).setdefault(site.lock, []).append(site)
        return waits, blame
