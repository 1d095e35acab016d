"""Recognises the threads that were woken from a condition wait and now wait for the mutex.

A thread takes its mutex back inside libc, where no hook of the library sees that. So the thread
still publishes the condition wait. The kernel knows the futex on which the thread sleeps: that is
the word of the mutex. The library knows when the last signal came.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from locktop.collector.linux import futex
from locktop.collector.linux.threads import KernelThreads
from locktop.collector.native import lib
from locktop.collector.shm import layout
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.layout import LockRow, WaitBlock
from locktop.collector.shm.reader import RawThread
from locktop.collector.shm.segment import GrowingArray, SharedMemory

_COND: int = lib.LT_KIND_COND
_MUTEX: int = lib.LT_KIND_MUTEX
_KIND_SHIFT: int = lib.LT_KIND_SHIFT


class _Begin(NamedTuple):
    """The begin of a wait for a mutex."""

    ticks: int
    is_known: bool  # else the wait began before


class ConditionWakeups:
    """Turns condition waits that are over into waits for the mutex."""

    def __init__(self, pid: int, memory: SharedMemory, clock: Clock, tasks: KernelThreads) -> None:
        self._pid = pid
        self._memory = memory
        self._clock = clock
        self._tasks = tasks
        self._conditions = GrowingArray(memory, layout.CONDITIONS_AT, layout.CONDITION.size)
        #: By tid and number of the wait.
        self._begins: dict[tuple[int, int], _Begin] = {}

    def apply(
        self, threads: Mapping[int, RawThread], rows: Mapping[int, LockRow]
    ) -> dict[int, RawThread]:
        """Return the threads by tid, with the waits for mutexes.

        Args:
            threads: the threads of one reading, by tid.
            rows: the locks of the scan, by id.

        Raises:
            LocktopError: the file is damaged.
        """
        begins: dict[tuple[int, int], _Begin] = {}
        threads_by_tid = dict(threads)
        sleepers = {
            tid: wait
            for tid, raw in threads.items()
            if (wait := raw.wait) is not None and wait.key >> _KIND_SHIFT == _COND
        }
        held: set[int] = set()
        if sleepers:
            held = {entry.lock for raw in threads.values() for entry in raw.held}
        for tid, wait in sleepers.items():
            raw = threads[tid]
            mutex = rows.get(wait.parties)  # the id of the mutex, for a condition wait
            # Most conditions have many sleepers and a free mutex: no query of the kernel for those.
            if mutex is None or mutex.lock not in held or not self._sleeps_for(tid, mutex):
                continue
            key = (tid, wait.seq)
            began = begins[key] = self._begins.get(key) or self._began(wait, rows, raw.now)
            threads_by_tid[tid] = replace(
                raw,
                wait=_mutex_wait(wait, mutex, began.ticks),
                is_wait_older=not began.is_known,
            )
        self._begins = begins
        return threads_by_tid

    def _sleeps_for(self, tid: int, mutex: LockRow) -> bool:
        """Whether the kernel says that the thread sleeps for the mutex."""
        try:
            call = self._tasks.call(tid)
        except OSError:
            return False
        wait = futex.parse_wait(self._pid, call) if call is not None else None
        return wait is not None and wait.address == mutex.address

    def _began(self, wait: WaitBlock, rows: Mapping[int, LockRow], now: int) -> _Begin:
        """Return when the thread was woken.

        Without a signal after the begin of the wait, a time limit or a cancellation has woken the
        thread. No thread noted that moment: the wait for the mutex began before this scan.
        """
        not_known = _Begin(now, is_known=False)
        row = rows.get(wait.lock)
        if row is None or not row.type:
            return not_known
        self._conditions.refresh()
        if row.type > self._conditions.count:
            return not_known
        offset = list(self._conditions.offsets())[row.type - 1]
        record = layout.CONDITION.unpack(self._memory.read(offset, layout.CONDITION.size))
        if wait.since < record.signalled <= now:
            return _Begin(record.signalled, is_known=True)
        return not_known


def _mutex_wait(wait: WaitBlock, mutex: LockRow, since: int) -> WaitBlock:
    return wait._replace(
        flags=0,
        key=_MUTEX << _KIND_SHIFT | mutex.address,
        lock=mutex.lock,
        since=since,
        holder=0,
        parties=0,
    )
