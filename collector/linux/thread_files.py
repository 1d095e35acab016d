"""Reads the files of /proc about the threads of a process, many at a time, in C.

To read an open file takes less than half of the time of open and read. This module therefore keeps
as many files open as descriptors allow. With few descriptors, the same calls only take longer.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import time
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from locktop.collector.native import Record, ffi, lib

_MAX_KEPT = 12_288  # descriptors
_FIRST_ROOM = 64  # threads
_MAX_TID = (1 << 31) - 1  # of pid_t; the memory of the target may have larger numbers
_NO_SLOT = -1
#: The links of the directory of a process's threads beside one for each thread (fs/proc/base.c).
_LINKS = 2
_EXISTS: int = lib.LT_TASK_THERE
_LACKS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class TaskRecord(NamedTuple):
    """struct lt_task."""

    at_ns: int
    cpu_ticks: int
    disk_ticks: int
    ran_ns: int
    queued_ns: int
    runs: int
    facts: int
    name_size: int
    call_size: int
    state: int
    name: bytes
    call: bytes


class SchedRecord(NamedTuple):
    """struct lt_sched."""

    at_ns: int
    ran_ns: int
    queued_ns: int
    runs: int


_RAW = Record(TaskRecord, "struct lt_task")
_SCHED = Record(SchedRecord, "struct lt_sched")


class ThreadFiles:
    """The files of the threads of one process. All ids are of our own pid namespace."""

    def __init__(self, pid: int, share: float = 0.75) -> None:
        """``share``: the largest part of our descriptor limit to use for open files."""
        self._pid = pid
        self._slots: dict[int, int] = {}  # by tid
        self._tids: list[int] = []  # by slot; for a free slot the last tid in it
        self._free: list[int] = []
        self._listed: list[int] = []
        self._links = 0  # of the directory, when ``_listed`` was read; 0: not known
        self._table = ffi.new("struct lt_task_table *")
        self._table.directory = -1
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        limited = soft != resource.RLIM_INFINITY
        self._table.max_kept = min(int(soft * share), _MAX_KEPT) if limited else _MAX_KEPT

    def now_s(self) -> float:
        """Return the time of the threads, monotonic clock. The time of a core stands still."""
        return time.monotonic()

    def tids(self) -> list[int]:
        """Return the ids of the process's threads. Raises OSError when it is gone."""
        directory = self._directory()
        links = os.fstat(directory).st_nlink
        self._listed = tids = list(map(int, os.listdir(directory)))
        self._links = links if links == _LINKS + len(tids) else 0
        return tids

    def tids_by_number(self) -> tuple[list[int], bool]:
        """Return the same, and whether the ids were read now.

        If the number of threads is as before, the ids are those of before. If one of these threads
        has ended, a thread that began meanwhile is missing.
        """
        if self._links and os.fstat(self._directory()).st_nlink == self._links:
            return self._listed, False
        return self.tids(), True

    def read(self, tids: Collection[int], calls: bool = False) -> list[TaskRecord | None]:
        """Return the stat and the schedstat of each thread, in order; None for an ended thread.

        ``calls``: read the syscall file too.

        Raises: OSError if this process lacks descriptors or memory; PermissionError if the kernel
        refuses the syscall file.
        """
        try:
            self._directory()
        except (FileNotFoundError, ProcessLookupError):
            return [None] * len(tids)
        slot_by_tid = self._slots
        slots = [slot_by_tid[tid] if tid in slot_by_tid else self._new_slot(tid) for tid in tids]
        real = slots if _NO_SLOT not in slots else [slot for slot in slots if slot != _NO_SLOT]
        wanted = ffi.new("uint32_t[]", real)
        _check(lib.lt_read_tasks(self._table, wanted, len(real), calls))
        return [self._record(slot) if slot != _NO_SLOT else None for slot in slots]

    def read_scheds(self, tids: Collection[int]) -> Iterator[tuple[int, ...]]:
        """Yield the fields of SchedRecord for each thread, in order.

        ``runs`` is 0 if the kernel does not count, or if the thread has ended.

        Raises: OSError if this process lacks descriptors or memory, or if the process is gone.
        """
        self._directory()
        wanted = ffi.new("uint32_t[]", [self._slot(tid) for tid in tids])
        scheds = ffi.new("struct lt_sched[]", len(wanted))
        _check(lib.lt_read_scheds(self._table, wanted, len(wanted), scheds))
        return _SCHED.tuples(ffi.buffer(scheds))

    def sample(self, tids: Collection[int], number: int) -> list[tuple[int, TaskRecord | None]]:
        """Return the threads that may have run since the former sample, each with its id.

        A thread that slept all the while is left out, unless its turn for a check has come
        (LT_TASK_SLEPT). The record of an ended thread is None.

        Args:
            tids: all threads of the process.
            number: counts the samples.

        Raises: OSError if this process lacks descriptors or memory; PermissionError if the kernel
        refuses a file. After an exception, the next sample begins anew.
        """
        self._directory()
        if self._slots.keys() != set(tids):
            self.keep_only(tids)
            for tid in tids:
                self._slot(tid)
        read = ffi.new("uint32_t[]", max(self._table.count, 1))
        try:
            count = _check(lib.lt_sample_tasks(self._table, number, read))
        except OSError:
            self.keep_only(())
            raise
        return [(self._tids[slot], self._record(slot)) for slot in ffi.unpack(read, count)]

    def still_sleeps(self, tid: int) -> bool:
        """Tell whether a thread slept at its last read or sample, and has not run since."""
        slot = self._slots.get(tid)
        return slot is not None and bool(lib.lt_still_sleeps(self._table, slot))

    def asleep(self, tids: Iterable[int]) -> set[int]:
        """Return the threads for which still_sleeps() is true."""
        slots = ffi.new("uint32_t[]", [self._slots[tid] for tid in tids if tid in self._slots])
        count = lib.lt_pick_asleep(self._table, slots, len(slots))
        return {self._tids[slot] for slot in ffi.unpack(slots, count)} if count else set()

    def keep_only(self, tids: Collection[int]) -> None:
        """Close the files of all other threads."""
        if len(self._slots) <= len(tids) and self._slots.keys() <= set(tids):
            return
        for tid in self._slots.keys() - set(tids):
            self._forget(tid)

    def close(self) -> None:
        """Close all files."""
        self.keep_only(())
        if self._table.directory >= 0:
            os.close(self._table.directory)
            self._table.directory = -1

    def _directory(self) -> int:
        """Return an open descriptor. The descriptor stays valid for this process if its pid is
        reused."""
        if self._table.directory < 0:
            path = f"/proc/{self._pid}/task"
            self._table.directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return int(self._table.directory)

    def _slot(self, tid: int) -> int:
        slot = self._slots.get(tid)
        return self._new_slot(tid) if slot is None else slot

    def _new_slot(self, tid: int) -> int:
        """Return the slot of a further thread; _NO_SLOT for a number that is no thread's id."""
        if not 0 < tid <= _MAX_TID:
            return _NO_SLOT
        if not self._free:
            self._grow()
        slot = self._slots[tid] = self._free.pop()
        self._tids[slot] = tid
        lib.lt_add_task(self._table, slot, tid)
        return slot

    def _grow(self) -> None:
        before, count = self._table.count, max(_FIRST_ROOM, 2 * self._table.count)
        files, tasks = ffi.new("struct lt_task_files[]", count), ffi.new("struct lt_task[]", count)
        if before:
            ffi.memmove(files, self._table.files, before * ffi.sizeof("struct lt_task_files"))
            ffi.memmove(tasks, self._table.tasks, before * ffi.sizeof("struct lt_task"))
        self._table.files, self._table.tasks, self._table.count = files, tasks, count
        self._arrays = files, tasks  # cffi frees an array without a reference
        self._data = ffi.buffer(tasks)
        self._tids += [0] * (count - before)
        self._free += range(count - 1, before - 1, -1)

    def _record(self, slot: int) -> TaskRecord | None:
        raw = _RAW.unpack(self._data, slot * _RAW.size)
        if raw.facts & _EXISTS:
            return raw
        self._forget(self._tids[slot])
        return None

    def _forget(self, tid: int) -> None:
        with contextlib.suppress(KeyError):
            slot = self._slots.pop(tid)
            lib.lt_forget_task(self._table, slot)
            self._free.append(slot)


def is_ours(error: OSError) -> bool:
    """Tell whether an error shows a lack of this process, and nothing about the target."""
    return error.errno in _LACKS


def _check(result: int) -> int:
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result
