"""Copies the ring records of all threads as they come, so that few are overwritten before."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from array import array
from collections import deque

from msgspec import Struct

from locktop.collector import native
from locktop.collector.errors import LocktopError
from locktop.collector.native import ffi, lib
from locktop.collector.shm import event_ring, layout, slot_batch
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.segment import GrowingArray, SharedMemory
from locktop.collector.shm.slot_batch import SlotBatch

#: Records that one batch may have, and records with which it is handed over at once.
CAPACITY, _ENOUGH = 1 << 17, 1 << 16
#: Long waits that are picked out of one batch, and out of one from before the drain. There all
#: threads may have waited for work again and again.
_MAX_LONG, _MAX_FIRST_LONG = 100, 1000
#: A damaged head of a ring may name any number; msgpack has room for 64 bits.
_MAX_LOST = (1 << 63) - 1
#: The shortest of the waits that are picked out, seconds.
LONG_WAIT_S = 1.0
#: The longest pause between two copies of the rings, seconds.
LONGEST_PAUSE_S = 0.1
#: Calls that empty the rings at the begin; each takes as much as one batch may have.
FIRST_CALLS = 100
_STATE_SIZE: int = ffi.sizeof("struct lt_drained_block")
_COUNT_AT = layout.THREADS_AT + native.offset_of("struct lt_array", "count")
_new_uncleared = ffi.new_allocator(should_clear_after_alloc=False)


class Drained(Struct, frozen=True):
    """The records of one call of RingDrain.take()."""

    slots: SlotBatch  # packed
    #: those of ``slots`` with a long wait; of very many, rather those for locks that have holders
    long_waits: SlotBatch


class RingDrain:
    """Drains the rings of a process, from one thread. ``follow`` may be called by another one."""

    def __init__(self, memory: SharedMemory, first_calls: int = FIRST_CALLS) -> None:
        """``first_calls``: how many batches may be taken at once of the records that are there."""
        self._rings = _FileRings(memory, False, first_calls)
        self._later: deque[_FileRings] = deque()  # files of programs that the process executed
        self._is_damaged = False  # the file of the present program
        self._woken = threading.Event()  # ends a call of ``take`` while the file is damaged
        self._is_closed = False

    def follow(self, memory: SharedMemory) -> None:
        """Go on with the file of another program after the records of the present one."""
        if self._is_closed:
            return
        with contextlib.suppress(LocktopError):  # the next scan reports the damage
            self._later.append(_FileRings(memory, True, FIRST_CALLS))
        self._woken.set()

    def take(self, within_s: float, longest_pause_s: float = LONGEST_PAUSE_S) -> Drained:
        """Return the records of the next ``within_s`` seconds, or sooner if there are many.

        Args:
            within_s: seconds; 0.0: the records that are there now. The call blocks without
                Python's lock.
            longest_pause_s: the longest pause between two copies. Long pauses cost less of a CPU,
                but a burst may overwrite records meanwhile.

        Raises:
            LocktopError: the shared memory is damaged. One call for each file raises this.
                Later calls return no records until another program follows.
        """
        while self._later:
            last = None if self._is_damaged else self._take_present(0.0, longest_pause_s)
            if last is not None and not last.slots.is_empty:
                return last
            self._rings.close()
            self._rings, self._is_damaged = self._later.popleft(), False
        if self._is_damaged:
            self._woken.wait(within_s)
            self._woken.clear()
            return self._rings.nothing()
        return self._take_present(within_s, longest_pause_s)

    def _take_present(self, within_s: float, longest_pause_s: float) -> Drained:
        try:
            return self._rings.take(within_s, longest_pause_s)
        except LocktopError:
            self._is_damaged = True
            self._woken.clear()
            raise

    @property
    def has_more(self) -> bool:
        """Whether another call of ``take`` returns records that are there already."""
        return bool(self._later) or (not self._is_damaged and self._rings.has_more)

    def hurry(self) -> None:
        """Let a call of ``take`` return soon. Any thread may call this."""
        self._rings.hurry()
        self._woken.set()

    @property
    def dropped(self) -> int:
        """How many waits of a second or more the file no longer has, as of the last batch."""
        return self._rings.dropped

    @property
    def is_closed(self) -> bool:
        """Whether nobody takes records any more."""
        return self._is_closed

    def close(self) -> None:
        """Release the files."""
        self._is_closed = True
        for rings in (self._rings, *self._later):
            rings.close()


class _FileRings:
    """The rings of one file."""

    def __init__(self, memory: SharedMemory, counts_from_begin: bool, first_calls: int) -> None:
        """``counts_from_begin``: whether records that are overwritten already count as lost."""
        # A descriptor of its own: the scanning thread may close its one at any time.
        self._memory = SharedMemory(os.dup(memory.fd), memory.path)
        try:
            self._begin(counts_from_begin, first_calls)
        except BaseException:
            self._memory.close()
            raise

    def _begin(self, counts_from_begin: bool, first_calls: int) -> None:
        self._clock = Clock(self._memory.header())
        self._threads = GrowingArray(self._memory, layout.THREADS_AT, layout.THREAD.size)
        self._state = array("Q")  # struct lt_drained_block, one after the other
        self._records = _new_uncleared("uint8_t[]", CAPACITY * event_ring.SIZE)
        self._packed = _new_uncleared("uint8_t[]", CAPACITY * lib.LT_PACKED_RECORD_MAX)
        self._args = ffi.new("struct lt_drain *")
        self._args.threads_at = _COUNT_AT
        self._marks = _new_uncleared("uint8_t[]", CAPACITY * event_ring.SIZE)
        self._args.records, self._args.capacity = self._records, CAPACITY
        self._args.marks = self._marks
        self._args.enough = _ENOUGH
        self._first: deque[Drained] = deque()  # records from before this moment
        #: Whether another call of ``take`` returns records that are there already.
        self.has_more = True
        for _ in range(first_calls):
            self._copy(0.0, LONGEST_PAUSE_S)
            if not counts_from_begin:
                self._args.lost = 0
            if self._args.count or self._args.marked or self._args.lost:
                self._first.append(self._drain(_MAX_FIRST_LONG))
            if not self._args.has_more:
                break

    def close(self) -> None:
        self._memory.close()

    def hurry(self) -> None:
        lib.lt_hurry_drain(self._args)

    @property
    def dropped(self) -> int:
        return int(self._args.dropped)

    def take(self, within_s: float, longest_pause_s: float) -> Drained:
        if self._first:
            return self._first.popleft()
        self._copy(within_s, longest_pause_s)
        self.has_more = bool(self._args.has_more)
        return self._drain()

    def nothing(self) -> Drained:
        """Return no records."""
        self._args.count = self._args.marked = self._args.damaged = self._args.lost = 0
        return self._drain()

    def _copy(self, within_s: float, longest_pause_s: float) -> None:
        args = self._args
        self._memory.refresh()
        self._threads.refresh()
        file, blocks = self._memory.mapping(), array("Q", self._threads.offsets())
        # A block keeps its ring when a thread ends and another one takes the block.
        self._state.frombytes(bytes(len(blocks) * _STATE_SIZE - 8 * len(self._state)))
        args.file, args.threads = file, len(blocks)
        args.blocks = ffi.from_buffer("uint64_t[]", blocks)
        args.state = ffi.from_buffer("struct lt_drained_block[]", self._state)
        args.longest_ns = round(longest_pause_s * 1e9)
        args.deadline_ns = time.monotonic_ns() + round(within_s * 1e9)
        if lib.lt_drain_rings(args) != lib.LT_DRAIN_DONE:
            raise self._memory.broken("a ring lies outside of it")

    def _drain(self, max_long: int = _MAX_LONG) -> Drained:
        clock, count = self._clock, int(self._args.count)
        clock.calibrate()
        size = lib.lt_pack_records(self._records, count, self._packed)
        long_ones = _new_uncleared("uint8_t[]", max_long * event_ring.SIZE)
        number = lib.lt_long_waits(
            self._records, count, clock.ticks(LONG_WAIT_S), long_ones, max_long
        )
        marks = bytes(ffi.buffer(self._marks, int(self._args.marked) * event_ring.SIZE))
        ticks, time_ns = clock.now_with_wall_time()
        slots = SlotBatch(
            ticks=ticks,
            time_ns=time_ns,
            hz=clock.hz,
            lost=min(int(self._args.lost) + int(self._args.damaged), _MAX_LOST),
            records=bytes(ffi.buffer(self._packed, size)),
            first=self._first_start(),
            packed=count,
            marks=marks,
        )
        raw = bytes(ffi.buffer(long_ones, number * event_ring.SIZE))
        return Drained(slots=slots, long_waits=slot_batch.replace_records(slots, raw))

    def _first_start(self) -> int:
        """Return when the earliest record or mark began, ticks; 0: there is none."""
        records = int(lib.lt_first_start(self._records, int(self._args.count)))
        marks = int(lib.lt_first_mark(self._marks, int(self._args.marked)))
        return min(records, marks) if records and marks else records or marks
