"""Reads the shared memory: the target's counters, waits and held locks, in ticks and ids.

The writer never waits for a reader. A reading therefore checks afterwards whether the copied parts
belong together, and copies again the parts that do not. abi.h has the rules.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from operator import itemgetter

from msgspec import Struct, field
from msgspec.msgpack import Decoder
from msgspec.structs import replace

from locktop.collector.native import ffi, lib
from locktop.collector.shm import layout
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.histograms import LineSums
from locktop.collector.shm.kinds import CONTENDING
from locktop.collector.shm.layout import (
    HeldRecord,
    LockRow,
    SiteSum,
    ThreadBlock,
    UseRecord,
    WaitBlock,
)
from locktop.collector.shm.retired_sites import RetiredSites
from locktop.collector.shm.segment import GrowingArray, SharedMemory
from locktop.collector.shm.table_sums import LockCharges, ScratchBuffer, TableSums

#: Lock rows handed to Python. Locks without any wait are left out first.
MAX_ROWS = 5_000
_MAX_HELD = 1 << 16
_ATTEMPTS = 4
#: Locks that may appear while the threads are read. The next scan reads further ones.
_NEW_LOCKS = 4096
#: Histograms are more than half of the bytes of a crowd. A reading may leave out so many bytes of
#: histograms, for so many seconds.
_MANY_LINE_BYTES, _LINES_S = 1 << 20, 1.9
#: A held entry has the time ``since`` if one of these flags is set.
_SINCE_IS_SET: int = lib.LT_HELD_TIMED | lib.LT_HELD_RECORDED | lib.LT_HELD_MET
_KINDS: int = lib.LT_KINDS
_of_contention = itemgetter(*CONTENDING)
_MAX_USES: int = lib.LT_USES


class RawThread(Struct, array_like=True, gc=False):
    """One thread block, and the sums of its tables.

    Readings return the same object as long as only ``now`` of the thread changes. The C reader
    writes the fields, and those of the records in them, in this order (lt_pack_thread()).
    """

    index: int
    offset: int  # of its block in the file
    block: ThreadBlock
    wait: WaitBlock | None
    held: tuple[HeldRecord, ...]
    now: int  # reading of the target's clock when this thread was read, ticks
    acquisitions: int  # of all locks whose waits are contention
    contended: int  # of these
    wait_ticks: tuple[tuple[int, int], ...]  # each kind (enum lt_kind) with ticks, and the ticks
    use_count: int  # of struct lt_use; entries beyond LT_USES are not in ``use_bytes``
    use_bytes: bytes  # struct lt_use, packed
    wait_lengths: bytes = b""  # of its waits in contention, as PackedHistogram has them
    waits_left_out: int = 0  # waits in contention that found no room in a bucket
    is_wait_older: bool = False  # the wait may have begun before ``wait.since``
    known_uses: list[UseRecord] | None = None  # the result of uses()

    def uses(self) -> list[UseRecord]:
        """Return the thread's counters at locks without an owner, such as semaphores."""
        if self.known_uses is None:
            self.known_uses = layout.USE.each(self.use_bytes)
        return self.known_uses

    @property
    def uses_are_complete(self) -> bool:
        """Whether ``uses`` has all entries."""
        return self.use_count <= _MAX_USES


class _PackedThread(RawThread, array_like=True, gc=False):
    """A thread that C code has packed."""

    block: ThreadBlock | None  # type: ignore[assignment]  # None: as in the reading before
    #: None: the lines of its histogram were not read.
    wait_lengths: bytes | None  # type: ignore[assignment]
    waits_left_out: int | None  # type: ignore[assignment]


_PACKED = Decoder(list[_PackedThread])


class Reading(Struct):
    """The result of one reading."""

    header: layout.Header
    control: layout.Control
    now: int
    threads: list[RawThread]
    newest: dict[int, RawThread]  # the newest block of each tid
    rows: list[LockRow]
    sites: dict[int, list[SiteSum]]  # by lock, longest wait first; without waits in progress
    charges: dict[int, LockCharges]  # by lock: waits charged to holders
    locks_now: int  # reading of the target's clock when the locks were read, ticks
    lines: LineSums  # the histograms of locks, at most _LINES_S older than the rest
    lines_left_out: int = 0  # waits and holds that found no room in a histogram
    left_out: int = 0  # locks without a row
    handed_over: bool = False  # some threads release locks that other threads took
    torn: bool = False  # threads ended during each attempt, so their figures may be wrong
    notes: list[str] = field(default_factory=list)

    def end_at(self, ticks: int) -> None:
        """Let all times of this reading end at ``ticks``."""
        self.now = min(self.now, ticks)
        for thread in self.threads:
            thread.now = min(thread.now, ticks)


class Reader:
    """Reads one file again and again. The sums of the last reading give the changes since."""

    def __init__(self, memory: SharedMemory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock
        self.threads = GrowingArray(memory, layout.THREADS_AT, layout.THREAD.size)
        self._locks = GrowingArray(memory, layout.LOCKS_AT, layout.LOCK_SIZE)
        self._retired = GrowingArray(memory, layout.RETIRED_AT, layout.RETIRED_SIZE)
        self._retired_lines = GrowingArray(memory, layout.RETIRED_LINES_AT, layout.LINE_SUM_SIZE)
        #: struct lt_ring by index, as of the last reading; ``first`` is the recorder's.
        self.rings = ffi.new("struct lt_ring[]", 0)
        self._scratch = ScratchBuffer()
        self._before = bytearray()
        self._before_count = 0
        self._rows = ffi.new("struct lt_lock_row[]", MAX_ROWS)
        self._retired_sites = RetiredSites(memory)
        self._mode = 0
        self._raws: list[RawThread | None] = []  # by index, as in ``_seen``
        self._epoch: int | None = None  # of the held lists in ``_raws``
        self._lines: LineSums | None = None  # of the last reading that read lines
        self._lines_due_s = 0.0  # time.monotonic() for the next reading of many lines
        self._forget_threads()

    def read(self, wanted: Iterable[int] = (), all_lines: bool = True) -> Reading:
        """Return the state of the file.

        Args:
            wanted: ids of locks that have a row in any case.
            all_lines: whether to read all histograms anew. If not, those of a process with many
                may be up to two seconds old.

        Raises: LocktopError for a damaged file.
        """
        reads_lines = all_lines or self._lines is None or time.monotonic() >= self._lines_due_s
        for attempt in range(_ATTEMPTS):
            before = self._memory.retire_seq()
            if before & 1 and attempt < _ATTEMPTS - 1:
                continue
            self._mode = self._memory.control().mode
            sums = self._new_sums(reads_lines)
            threads = self._read_threads(sums)
            self._read_retired(sums)
            locks_now, handed_over = self._read_locks()
            torn = bool(before & 1) or self._memory.retire_seq() != before
            if not torn:
                break
        self._retired_sites.begin(before)
        lines = self._newest_lines(sums)
        count = min(self._locks.count, sums.lock_count)
        rows, left_out = self._pick_rows(sums, lines, count, _listed_locks(threads, wanted))
        self._add_further_sites(sums, rows, threads)
        self._before, self._before_count = sums.by_lock, count
        sites, charges = sums.sites_by_lock()
        header = self._memory.header()
        return Reading(
            header=header,
            control=self._memory.control(),
            now=self._clock.now(),
            threads=threads,
            newest=newest_of_each_tid(threads),
            rows=rows,
            sites=sites,
            charges=charges,
            locks_now=locks_now,
            lines=lines,
            lines_left_out=sums.lines_left_out + header.lines_left_out,
            left_out=left_out,
            handed_over=handed_over,
            torn=torn,
            notes=["some of a thread's figures were damaged"] if sums.refused else [],
        )

    def read_threads(self) -> dict[int, RawThread]:
        """Return the threads alone, by tid: a second reading confirms which thread waits for
        which."""
        self._mode = self._memory.control().mode
        return newest_of_each_tid(self._read_threads(self._new_sums(reads_lines=False)))

    def holds(self, thread: RawThread) -> frozenset[int]:
        """Return the ids of the locks in a thread's held list, as read now."""
        return frozenset(entry.lock for entry in self.held_list(thread))

    def held_list(self, thread: RawThread) -> tuple[HeldRecord, ...]:
        """Return a thread's held list, as read now; empty if the block has another thread."""
        data = memoryview(self._memory.read(thread.offset, layout.THREAD.size))
        block = layout.THREAD.unpack(data)
        if (block.tid, block.birth) != (thread.block.tid, thread.block.birth):
            return ()
        return self._held_records(block, thread.offset, data)

    def owned_semaphores(self, candidates: Iterable[tuple[int, int]]) -> set[int]:
        """Return the semaphores that a thread has acquired once more than the thread posted them.

        Args:
            candidates: pairs of a thread's tid and a semaphore's lock id.
        """
        threads = self.read_threads()
        return {
            use.lock
            for tid, lock in candidates
            if (thread := threads.get(tid)) is not None
            for use in thread.uses()
            if use.lock == lock and use.acquisitions - use.signals == 1
        }

    def _new_sums(self, reads_lines: bool) -> TableSums:
        self._locks.refresh()
        count = self._locks.count + _NEW_LOCKS
        return TableSums(self._memory, self._clock, self._scratch, count, self._mode, reads_lines)

    def _newest_lines(self, sums: TableSums) -> LineSums:
        if sums.lines is not None:
            self._lines = sums.lines
            self._lines_due_s = time.monotonic() + _LINES_S
        assert self._lines is not None, "the first reading reads them"
        if sums.args.line_bytes < _MANY_LINE_BYTES:
            self._lines_due_s = 0.0
        return self._lines

    def _read_locks(self) -> tuple[int, bool]:
        """Copy the lock table; return the target's clock then, and Reading.handed_over."""
        self._locks.refresh()
        self._locks.copy()
        now = self._clock.now()
        handed_over = lib.lt_count_handed_over(
            ffi.from_buffer(self._locks.data), self._locks.count * layout.LOCK_SIZE
        )
        return now, bool(handed_over)

    def _read_retired(self, sums: TableSums) -> None:
        self._retired.refresh()
        self._retired.copy()
        sums.args.refused += lib.lt_fold_retired(
            ffi.from_buffer(self._retired.data),
            self._retired.count * layout.RETIRED_SIZE,
            sums.by_lock_pointer,
            sums.lock_count,
        )
        if sums.lines is None:
            return
        self._retired_lines.refresh()
        if self._retired_lines.count:
            self._retired_lines.copy()
            lines = ffi.from_buffer(self._retired_lines.data)
            sums.args.refused += sums.lines.add_ended(lines, self._retired_lines.count)

    # ---- threads ----

    def _read_threads(self, sums: TableSums) -> list[RawThread]:
        self.threads.refresh()
        epoch = self._mode >> 8
        if epoch != self._epoch or self.threads.count != len(self._raws):
            self._forget_threads()
        raws = self._raws
        self._epoch = None  # after a failure, all threads are made anew
        for index in sums.changed_threads(self._offsets, self._seen, self._now, self.rings):
            raws[index] = self._raw_thread(sums, index)
        for changed in _PACKED.decode(sums.packed_threads()):
            before = raws[changed.index]
            if changed.block is None:
                changed.block = before.block  # type: ignore[union-attr]
            if changed.wait_lengths is None:
                _keep_histogram(changed, before)
            raws[changed.index] = changed
        self._epoch = epoch
        threads: list[RawThread] = []
        for index, now in enumerate(ffi.unpack(self._now, len(raws))):
            raw = raws[index]
            if not now:
                # The thread ended, or the block never had one. The retire count shows if the
                # thread ended during this reading.
                raws[index] = None
            elif raw is not None:
                raw.now = now
                threads.append(raw)
        _fill_in_lock_ids(threads)
        return threads

    def _forget_threads(self) -> None:
        """Forget the threads of former readings, so that each RawThread is made anew."""
        count = self.threads.count
        self._raws = [None] * count
        self._seen = ffi.new("struct lt_thread_seen[]", count)
        self._now = ffi.new("uint64_t[]", count)
        self._offsets = ffi.new("uint64_t[]", list(self.threads.offsets()))
        if len(self.rings) < count:
            before, self.rings = self.rings, ffi.new("struct lt_ring[]", count)
            ffi.memmove(self.rings, before, ffi.sizeof(before))

    def _raw_thread(self, table_sums: TableSums, index: int) -> RawThread:
        """Return the thread that was read last."""
        offset, block = self._offsets[index], layout.THREAD.unpack(table_sums.block)
        wait = table_sums.wait()
        held: tuple[HeldRecord, ...] = ()
        # A thread that has not seen the present epoch may have missed releases.
        if block.held_top and (wait or block.mode >> 8 == self._mode >> 8):
            held = self._held_records(block, offset, table_sums.block)
            if wait is not None and not self._is_still(wait, block, offset):
                wait = None
        *sums, _, left_out, use_count = table_sums.thread_sums()
        thread = _PackedThread(
            index=index,
            offset=offset,
            block=block,
            wait=wait,
            held=held,
            now=int(table_sums.args.now),
            acquisitions=sum(_of_contention(sums[:_KINDS])),
            contended=sum(_of_contention(sums[_KINDS : 2 * _KINDS])),
            wait_ticks=tuple(pair for pair in enumerate(sums[2 * _KINDS :]) if pair[1]),
            use_count=use_count,
            use_bytes=table_sums.uses(use_count),
            wait_lengths=table_sums.waits(),
            waits_left_out=left_out,
        )
        if thread.wait_lengths is None:
            _keep_histogram(thread, self._raws[index])
        return thread

    def _is_still(self, wait: WaitBlock, block: ThreadBlock, offset: int) -> bool:
        """Tell whether the thread was in this wait until its held list was copied. A long held list
        lies elsewhere, and was copied later than the block."""
        if 0 <= block.held - offset < layout.THREAD.size:
            return True
        return (
            int.from_bytes(self._memory.read(offset + layout.WAIT_AT, 4), layout.BYTE_ORDER)
            == wait.seq
        )

    def _held_records(
        self, block: ThreadBlock, offset: int, data: memoryview
    ) -> tuple[HeldRecord, ...]:
        count = min(min(block.held_top, block.held_size) // layout.HELD.size, _MAX_HELD)
        if not count or not block.held:
            return ()
        start = block.held - offset
        if (
            not 0 <= start <= layout.THREAD.size - count * layout.HELD.size
        ):  # moved to a larger list
            data = memoryview(self._memory.read(block.held, count * layout.HELD.size))
            start = 0
        entries = [layout.HELD.unpack(data, start + i * layout.HELD.size) for i in range(count)]
        return tuple(
            entry if entry.flags & _SINCE_IS_SET else entry._replace(since=0)
            for entry in entries
            if entry.key
        )

    # ---- locks ----

    def _add_further_sites(
        self, sums: TableSums, rows: list[LockRow], threads: list[RawThread]
    ) -> None:
        """Add the call sites of ended threads, and of waits that are not recorded yet."""
        for row in rows:
            if row.sites:
                ended = self._retired_sites.sites(row)
                sums.add_sites(ended.sums)
                sums.add_charges(ended.charges)
        for thread in threads:
            if thread.held:
                sums.add_sites(_unrecorded_waits(thread))

    def _pick_rows(
        self, sums: TableSums, lines: LineSums, count: int, listed: set[int]
    ) -> tuple[list[LockRow], int]:
        """Return the rows of the first ``count`` locks, and how many locks have no row."""
        wanted = bytearray(max(count, 1))
        for lock in listed:
            if lock < count:
                wanted[lock] = 1
        left_out = ffi.new("uint32_t *")
        before = ffi.from_buffer("struct lt_lock_sum[]", self._before)
        written = lib.lt_pick_locks(
            ffi.from_buffer(self._locks.data),
            count,
            sums.by_lock_pointer,
            before,
            self._before_count,
            ffi.from_buffer("uint8_t[]", wanted),
            lines.lock_lines,
            self._rows,
            MAX_ROWS,
            left_out,
        )
        data = memoryview(ffi.buffer(self._rows, written * layout.LOCK_ROW.size))
        rows = [layout.LOCK_ROW.unpack(data, i * layout.LOCK_ROW.size) for i in range(written)]
        return rows, int(left_out[0])


def _keep_histogram(thread: _PackedThread, before: RawThread | None) -> None:
    """Fill in the histogram of the reading before, which a new thread does not have."""
    if before is not None and before.block.birth == thread.block.birth:  # type: ignore[union-attr]
        thread.wait_lengths, thread.waits_left_out = before.wait_lengths, before.waits_left_out
    else:
        thread.wait_lengths, thread.waits_left_out = b"", 0


def _listed_locks(threads: list[RawThread], wanted: Iterable[int]) -> set[int]:
    """Return the ids of the locks that need a row: ``wanted``, awaited and held locks."""
    listed = set(wanted)
    for thread in threads:
        if thread.wait is not None:
            listed.add(thread.wait.lock)
        if thread.held:
            listed.update([entry.lock for entry in thread.held])
    return listed


def newest_of_each_tid(threads: list[RawThread]) -> dict[int, RawThread]:
    """Return the blocks by tid. Of two blocks with one tid, the older one's thread is dead."""
    newest: dict[int, RawThread] = {}
    for thread in threads:
        other = newest.setdefault(thread.block.tid, thread)
        if other.block.birth < thread.block.birth:
            newest[thread.block.tid] = thread
    return newest


def _fill_in_lock_ids(threads: list[RawThread]) -> None:
    """Fill in lock ids that are missing in held lists.

    The lock table had no room when such a lock was acquired, but had room when another thread
    waited. The waiting thread knows the lock's id, and the holder that it saw. The held list alone
    would not do. Without an entry in the table nothing shows that another thread released the lock.
    """
    late = [
        index
        for index, thread in enumerate(threads)
        if thread.held and any(not entry.lock for entry in thread.held)
    ]
    if not late:
        return
    seen = {(wait.key, wait.holder): wait.lock for thread in threads if (wait := thread.wait)}
    for index in late:
        thread = threads[index]
        named = [
            entry._replace(lock=entry.lock or seen.get((entry.key, thread.block.tid), 0))
            for entry in thread.held
        ]
        threads[index] = replace(thread, held=tuple(named))


def _unrecorded_waits(thread: RawThread) -> bytes:
    """Return the call sites of a thread's contended acquisitions of locks that it holds, packed.

    The library counts a contended acquisition at once, but its call site only after the release.
    """
    return b"".join(
        layout.SITE_SUM.pack(
            SiteSum(
                lock=held.lock,
                stack=held.stack,
                living=0,
                blame=0,
                count=1,
                wait_ticks=held.wait_ticks,
                wait_max=held.wait_ticks,
            )
        )
        for held in thread.held
        if held.flags & lib.LT_HELD_CONTENDED and held.stack
    )
