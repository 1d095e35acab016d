"""One reading of the shared memory: what the target's counters said, in ticks and ids.

The writer never waits for a reader, so a reading checks afterwards whether what it copied
belonged together, and copies again what did not (the rules stand in abi.h).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from locktop.collector import native
from locktop.collector.native import ffi, lib
from locktop.collector.shm import layout
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.layout import HeldEntry, LockRow, SiteSum, ThreadBlock, Use, WaitBlock
from locktop.collector.shm.segment import GrowingArray, SharedMemory

#: Rows handed to Python; locks that nobody waited for are left out first.
MAX_ROWS = 5_000
_MAX_HELD = 1 << 16
_MAX_RETIRED_SITES = 10_000
_ATTEMPTS = 4
#: Locks that may appear while the threads are read; those beyond wait for the next look.
_NEW_LOCKS = 4096
#: A wait shorter than this may end unseen: what it adds is not worth copying a table again.
_LONG_WAIT_S = 0.005
#: What a thread's mode says while the library works for it.
_SINCE_IS_SET: int = lib.LT_HELD_TIMED | lib.LT_HELD_RECORDED | lib.LT_HELD_MET
_KINDS: int = lib.LT_KINDS
_FIRST_SCRATCH = 1 << 18
_new_uncleared = ffi.new_allocator(should_clear_after_alloc=False)
_FIRST_SITES = 1024
_USES_AT = native.offset_of("struct lt_thread_sum", "uses")
_MAX_USES: int = lib.LT_USES


@dataclass(slots=True)
class RawThread:
    """One thread block. The three tuples are by kind (enum lt_kind).

    It is the same object reading after reading as long as nothing of it changes but ``now``."""

    index: int
    offset: int  # of its block in the file
    block: ThreadBlock
    wait: WaitBlock | None
    held: tuple[HeldEntry, ...]
    now: int  # the target's clock when this thread was read
    acquisitions: tuple[int, ...]
    contended: tuple[int, ...]
    wait_ticks: tuple[int, ...]
    use_count: int  # more than LT_USES: not all are there
    use_bytes: bytes  # of struct lt_use

    def uses(self) -> list[Use]:
        """Return what it did at locks that nobody owns."""
        return layout.USE.each(self.use_bytes)

    @property
    def uses_are_whole(self) -> bool:
        """Whether ``uses`` leaves none out."""
        return self.use_count <= _MAX_USES


@dataclass(slots=True)
class Reading:
    """Everything one reading found."""

    header: layout.Header
    control: layout.Control
    now: int
    threads: list[RawThread]
    newest: dict[int, RawThread]  # of the threads, by tid
    rows: list[LockRow]
    sites: dict[int, list[SiteSum]]  # by lock, most wait first; waits going on not included
    blame: dict[int, list[SiteSum]]  # by lock: what holders are charged with, most wait first
    locks_now: int  # the target's clock when the locks were read
    left_out: int = 0
    handed_over: bool = False  # locks are released by threads that did not take them
    torn: bool = False  # threads ended all the while: their figures may be off
    notes: list[str] = field(default_factory=list)

    def end_at(self, ticks: int) -> None:
        """Let nothing in it go on beyond that."""
        self.now = min(self.now, ticks)
        for thread in self.threads:
            thread.now = min(thread.now, ticks)


class Reader:
    """Reads one file again and again; keeps the sums of the last reading for the changes."""

    def __init__(self, memory: SharedMemory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock
        self.threads = GrowingArray(memory, layout.THREADS_AT, layout.THREAD.size)
        self._locks = GrowingArray(memory, layout.LOCKS_AT, layout.LOCK_SIZE)
        self._retired = GrowingArray(memory, layout.RETIRED_AT, layout.RETIRED_SIZE)
        self._scratch = _Scratch()
        self._before = bytearray()
        self._before_count = 0
        self._rows = ffi.new("struct lt_lock_row[]", MAX_ROWS)
        self._retired_sites: dict[int, tuple[int, bytes]] = {}
        self._retired_at = -1
        self._mode = 0
        self._raws: list[RawThread | None] = []  # by index, as ``_seen`` has them
        self._epoch: int | None = None  # of their held lists
        self._forget_threads()

    def read(self, wanted: Iterable[int] = ()) -> Reading:
        """Return what the file says now, with the locks of the ids ``wanted`` in any case. Raises
        LocktopError for a damaged file."""
        for attempt in range(_ATTEMPTS):
            before = self._memory.retire_seq()
            if before & 1 and attempt < _ATTEMPTS - 1:
                continue
            self._mode = self._memory.control().mode
            cycle = self._begin()
            self._read_threads(cycle)
            self._read_retired(cycle)
            count = min(self._read_locks(cycle), cycle.sum_count)
            torn = bool(before & 1) or self._memory.retire_seq() != before
            if not torn:
                break
        self._forget_retired_sites(before)
        return self._finished(cycle, count, torn, wanted)

    def read_threads(self) -> dict[int, RawThread]:
        """Return the threads alone, by tid, for a second look at who waits for whom."""
        self._mode = self._memory.control().mode
        cycle = self._begin()
        self._read_threads(cycle)
        return newest_of_each_tid(cycle.threads)

    def holds(self, thread: RawThread) -> frozenset[int]:
        """Return the ids of the locks that one thread lists as held now."""
        data = memoryview(self._memory.read(thread.offset, layout.THREAD.size))
        block = layout.THREAD.at(data)
        if (block.tid, block.birth) != (thread.block.tid, thread.block.birth):
            return frozenset()
        return frozenset(entry.lock for entry in self._held(block, thread.offset, data))

    def got(self, asked: Iterable[tuple[int, int]]) -> set[int]:
        """Of threads and semaphores, by tid and id, return the semaphores that the thread has got
        once more than it has posted them, as it is read now."""
        threads = self.read_threads()
        return {
            use.lock
            for tid, lock in asked
            if (thread := threads.get(tid)) is not None
            for use in thread.uses()
            if use.lock == lock and use.acquisitions - use.signals == 1
        }

    def _begin(self) -> _Cycle:
        self._locks.refresh()
        return _Cycle(self._memory, self._clock, self._scratch, self._locks.count + _NEW_LOCKS)

    def _read_locks(self, cycle: _Cycle) -> int:
        self._locks.refresh()
        self._locks.copy()
        cycle.locks_now = self._clock.now()
        cycle.handed_over = lib.lt_count_handed_over(
            ffi.from_buffer(self._locks.data), self._locks.count * layout.LOCK_SIZE
        )
        return self._locks.count

    def _read_retired(self, cycle: _Cycle) -> None:
        self._retired.refresh()
        self._retired.copy()
        cycle.args.refused += lib.lt_fold_retired(
            ffi.from_buffer(self._retired.data),
            self._retired.count * layout.RETIRED_SIZE,
            cycle.sums_pointer,
            cycle.sum_count,
        )

    # ---- threads ----

    def _read_threads(self, cycle: _Cycle) -> None:
        self.threads.refresh()
        self.threads.copy()
        epoch = self._mode >> 8
        if epoch != self._epoch or self.threads.count != len(self._raws):
            self._forget_threads()
        # Not of a memoryview: collecting a cycle with both would crash the interpreter (cffi 2.1).
        blocks, raws = ffi.from_buffer(self.threads.data), self._raws
        self._epoch = None  # where this fails all are told anew
        for index in cycle.changed_threads(blocks, self._offsets, self._seen, self._now):
            raws[index] = self._raw_thread(cycle, index)
        self._epoch = epoch
        for index, now in enumerate(ffi.unpack(self._now, len(raws))):
            raw = raws[index]
            if not now:
                raws[index] = None  # or never was; the retire count shows if it ended just now
            elif raw is not None:
                raw.now = now
                cycle.threads.append(raw)
        _name_late_locks(cycle.threads)

    def _forget_threads(self) -> None:
        """What was read of them before, so that each is told anew."""
        count = self.threads.count
        self._raws = [None] * count
        self._seen = ffi.new("struct lt_thread_seen[]", count)
        self._now = ffi.new("uint64_t[]", count)
        self._offsets = ffi.new("uint64_t[]", list(self.threads.offsets()))

    def _raw_thread(self, cycle: _Cycle, index: int) -> RawThread:
        """The one that was read last."""
        at, after, wait = self._offsets[index], layout.THREAD.at(cycle.block), cycle.wait()
        held: tuple[HeldEntry, ...] = ()
        # One that has not seen the present epoch may have missed releases.
        if after.held_top and (wait or after.mode >> 8 == self._mode >> 8):
            held = self._held(after, at, cycle.block)
            if wait is not None and not self._is_still(wait, after, at):
                wait = None
        sums = cycle.args.sum
        use_count = int(sums.use_count)
        return RawThread(
            index=index,
            offset=at,
            block=after,
            wait=wait,
            held=held,
            now=int(cycle.args.now),
            acquisitions=tuple(ffi.unpack(sums.acquisitions, _KINDS)),
            contended=tuple(ffi.unpack(sums.contended, _KINDS)),
            wait_ticks=tuple(ffi.unpack(sums.wait_ticks, _KINDS)),
            use_count=use_count,
            use_bytes=cycle.uses(use_count),
        )

    def _is_still(self, wait: WaitBlock, block: ThreadBlock, at: int) -> bool:
        """Tell whether the thread was in this wait until its list was copied: a long one lies
        elsewhere, and was copied later than the block."""
        if 0 <= block.held - at < layout.THREAD.size:
            return True
        return (
            int.from_bytes(self._memory.read(at + layout.WAIT_AT, 4), layout.BYTE_ORDER) == wait.seq
        )

    def _held(self, block: ThreadBlock, at: int, data: memoryview) -> tuple[HeldEntry, ...]:
        count = min(min(block.held_top, block.held_size) // layout.HELD.size, _MAX_HELD)
        if not count or not block.held:
            return ()
        start = block.held - at
        if (
            not 0 <= start <= layout.THREAD.size - count * layout.HELD.size
        ):  # moved to a larger list
            data = memoryview(self._memory.read(block.held, count * layout.HELD.size))
            start = 0
        entries = [layout.HELD.at(data, start + i * layout.HELD.size) for i in range(count)]
        return tuple(
            entry if entry.flags & _SINCE_IS_SET else entry._replace(since=0)
            for entry in entries
            if entry.key
        )

    # ---- locks ----

    def _finished(self, cycle: _Cycle, count: int, torn: bool, ordered: Iterable[int]) -> Reading:
        wanted = bytearray(max(count, 1))
        for lock in ordered:
            if lock < count:
                wanted[lock] = 1
        for thread in cycle.threads:
            if thread.wait is not None and thread.wait.lock < count:
                wanted[thread.wait.lock] = 1
            for entry in thread.held:
                if entry.lock < count:
                    wanted[entry.lock] = 1
        rows, left_out = self._pick(cycle, count, wanted)
        for row in rows:
            if row.sites:
                cycle.fold_sites(self._sites_of_ended(row))
        for thread in cycle.threads:
            if thread.held:
                cycle.fold_sites(_waits_to_be_recorded(thread))
        self._before, self._before_count = cycle.sums, count
        sites, blame = cycle.sites_by_lock()
        return Reading(
            header=self._memory.header(),
            control=self._memory.control(),
            now=self._clock.now(),
            threads=cycle.threads,
            newest=newest_of_each_tid(cycle.threads),
            rows=rows,
            sites=sites,
            blame=blame,
            locks_now=cycle.locks_now,
            left_out=left_out,
            handed_over=bool(cycle.handed_over),
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
            MAX_ROWS,
            left_out,
        )
        data = memoryview(ffi.buffer(self._rows, written * layout.LOCK_ROW.size))
        rows = [layout.LOCK_ROW.at(data, i * layout.LOCK_ROW.size) for i in range(written)]
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
        for _ in range(_MAX_RETIRED_SITES):
            if not at:
                break
            site = layout.RETIRED_SITE.at(self._memory.read(at, layout.RETIRED_SITE.size))
            packed.append(
                layout.SITE_SUM.pack(
                    SiteSum(
                        lock=row.lock,
                        stack=site.stack,
                        holder=0,
                        blame=min(site.blame, 1),
                        count=site.count,
                        wait_ticks=site.wait_ticks,
                        wait_max=0,
                    )
                )
            )
            at = site.next
        return b"".join(packed)


def newest_of_each_tid(threads: list[RawThread]) -> dict[int, RawThread]:
    """Return the blocks by tid; of two with one tid the older one's thread is dead."""
    newest: dict[int, RawThread] = {}
    for thread in threads:
        other = newest.setdefault(thread.block.tid, thread)
        if other.block.birth < thread.block.birth:
            newest[thread.block.tid] = thread
    return newest


def _name_late_locks(threads: list[RawThread]) -> None:
    """Fill in the ids of locks that found no room when they were taken, and did when they were
    waited for. Who waits knows the id, and whom it saw have the lock. What that one lists would
    not do alone: without an entry for the lock nothing tells that another thread gave it back."""
    late = [
        at
        for at, thread in enumerate(threads)
        if thread.held and any(not entry.lock for entry in thread.held)
    ]
    if not late:
        return
    seen = {(wait.key, wait.holder): wait.lock for thread in threads if (wait := thread.wait)}
    for at in late:
        thread = threads[at]
        named = [
            entry._replace(lock=entry.lock or seen.get((entry.key, thread.block.tid), 0))
            for entry in thread.held
        ]
        threads[at] = replace(thread, held=tuple(named))


class _Scratch:
    """Room for the copy of one thread's tables, kept from look to look: it may be large."""

    def __init__(self) -> None:
        self.size = 0
        self.make(_FIRST_SCRATCH)

    def make(self, size: int) -> None:
        """Make room for ``size`` bytes."""
        if size > self.size:
            self.bytes, self.size = _new_uncleared("uint8_t[]", size), size


class _Cycle:
    """The sums of one reading while it is made."""

    def __init__(
        self, memory: SharedMemory, clock: Clock, scratch: _Scratch, sum_count: int
    ) -> None:
        self._memory = memory
        self._scratch = scratch
        self.sum_count = sum_count
        self.sums = bytearray(sum_count * layout.LOCK_SUM_SIZE)
        self.sums_pointer = ffi.from_buffer("struct lt_lock_sum[]", self.sums)
        self.threads: list[RawThread] = []
        self.handed_over = 0
        self.locks_now = 0
        self.args = ffi.new("struct lt_thread_read *")
        self.args.fd, self.args.clock = memory.fd, clock.kind
        self.args.long_wait = clock.ticks(_LONG_WAIT_S)
        self.args.scratch_max = memory.most
        self.args.sums, self.args.sum_count = self.sums_pointer, sum_count
        self.block = ffi.buffer(ffi.addressof(self.args, "block"))
        self._waits = ffi.addressof(self.args, "block", "wait")
        self.sum = ffi.buffer(ffi.addressof(self.args, "sum"))
        self._set_scratch(0)
        self._set_sites(_FIRST_SITES)

    @property
    def refused(self) -> int:
        """Slots left out because their lock or their kind cannot be."""
        return int(self.args.refused)

    def _set_scratch(self, size: int) -> None:
        self._scratch.make(size)
        self.args.scratch, self.args.scratch_size = self._scratch.bytes, self._scratch.size

    def _set_sites(self, capacity: int) -> None:
        self._sites = ffi.new("struct lt_site_sum[]", capacity)
        self._used = ffi.new("uint32_t *")
        self.args.sites, self.args.site_capacity, self.args.site_used = self._sites, capacity, 0

    def wait(self) -> WaitBlock | None:
        """Return the wait of the thread that was read last."""
        waits = self._waits
        return (
            None if waits.key == 0 or waits.seq & 1 else layout.WAIT.at(self.block, layout.WAIT_AT)
        )

    def uses(self, count: int) -> bytes:
        """Return the struct lt_use of the thread that was read last."""
        return bytes(self.sum[_USES_AT : _USES_AT + min(count, _MAX_USES) * layout.USE.size])

    def changed_threads(self, blocks: Any, offsets: Any, seen: Any, now: Any) -> Iterator[int]:
        """Add all threads' tables to the sums. Yields the index of each that is not as ``seen`` has
        it, while all of it is here. Raises LocktopError for a damaged one; arguments: see
        lt_read_threads()."""
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

    def fold_sites(self, sites: bytes) -> None:
        """Add struct lt_site_sum, packed."""
        if not sites:
            return
        args, used = self.args, self._used
        sums, count = (
            ffi.from_buffer("struct lt_site_sum[]", sites),
            len(sites) // layout.SITE_SUM.size,
        )
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
        """Return the waits by lock, and whom they are charged to; most wait first."""
        count = lib.lt_sort_sites(self._sites, self.args.site_capacity)
        waits: dict[int, list[SiteSum]] = {}
        blame: dict[int, list[SiteSum]] = {}
        for site in layout.SITE_SUM.each(ffi.buffer(self._sites, count * layout.SITE_SUM.size)):
            (blame if site.blame else waits).setdefault(site.lock, []).append(site)
        return waits, blame


def _waits_to_be_recorded(thread: RawThread) -> bytes:
    """A contended acquisition is counted at once, but where it came from only after the release."""
    return b"".join(
        layout.SITE_SUM.pack(
            SiteSum(
                lock=held.lock,
                stack=held.stack,
                holder=0,
                blame=0,
                count=1,
                wait_ticks=held.wait_ticks,
                wait_max=held.wait_ticks,
            )
        )
        for held in thread.held
        if held.flags & lib.LT_HELD_CONTENDED and held.stack
    )
