"""The files of /proc about each thread of a process, read many at a time in C.

Reading an open file costs less than half of opening it anew, so as many are kept open as
descriptors allow; where these are short all works on, and takes longer.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from collections.abc import Collection, Iterable
from typing import NamedTuple

from locktop.collector.native import Record, ffi, lib

_MAX_KEPT = 12_288  # descriptors
_FIRST_ROOM = 64  # threads
_MAX_TID = (1 << 31) - 1  # pid_t: a stranger's memory may say more
_THERE: int = lib.LT_TASK_THERE
_LACKS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class TaskRecord(NamedTuple):
    """struct lt_task."""

    at_ns: int
    cpu_ticks: int
    disk_ticks: int
    ran_ns: int
    queued_ns: int
    runs: int
    known: int
    name_size: int
    call_size: int
    state: int
    name: bytes
    call: bytes


_RAW = Record(TaskRecord, "struct lt_task")


class ThreadFiles:
    """Those of one process. Ids are those of our own pid namespace."""

    def __init__(self, pid: int, share: float = 0.75) -> None:
        """``share``: of the descriptors that we may have open, kept open at most."""
        self._pid = pid
        self._places: dict[int, int] = {}  # by tid
        self._tids: list[int] = []  # by place; of an empty one the last that had it
        self._empty: list[int] = []
        self._table = ffi.new("struct lt_task_table *")
        self._table.directory = -1
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        limited = soft != resource.RLIM_INFINITY
        self._table.max_kept = min(int(soft * share), _MAX_KEPT) if limited else _MAX_KEPT

    def tids(self) -> list[int]:
        """Return the ids of the process's threads. Raises OSError when it is gone."""
        return [int(name) for name in os.listdir(self._directory())]

    def read(self, tids: Collection[int], calls: bool = False) -> list[TaskRecord | None]:
        """Return what the stat and the schedstat of these threads say, in order, and with ``calls``
        the syscall file; None of one that has ended. Raises OSError where we lack what reading
        takes, as descriptors, PermissionError where calls may not be seen."""
        try:
            self._directory()
        except (FileNotFoundError, ProcessLookupError):
            return [None] * len(tids)
        places = {tid: self._place(tid) for tid in tids if 0 < tid <= _MAX_TID}
        wanted = ffi.new("uint32_t[]", list(places.values()))
        _check(lib.lt_read_tasks(self._table, wanted, len(places), calls))
        found = {tid: self._told(place) for tid, place in places.items()}
        return [found.get(tid) for tid in tids]

    def sample(self, tids: Collection[int], number: int) -> list[tuple[int, TaskRecord | None]]:
        """Return with their ids those of the process's threads that did not sleep on since the
        sample before, or were looked at all the same (LT_TASK_SLEPT); None of one that has ended.
        ``tids``: all threads; ``number`` counts the samples.

        Raises OSError where we lack what reading takes, PermissionError where the process may not
        be looked into: the next sample is a first one then.
        """
        self._directory()
        if self._places.keys() != set(tids):
            self.keep_only(tids)
            for tid in tids:
                self._place(tid)
        read = ffi.new("uint32_t[]", max(self._table.count, 1))
        try:
            count = _check(lib.lt_sample_tasks(self._table, number, read))
        except OSError:
            self.keep_only(())
            raise
        return [(self._tids[place], self._told(place)) for place in ffi.unpack(read, count)]

    def still_sleeps(self, tid: int) -> bool:
        """Tell whether a thread slept when it was read or sampled, and was on no CPU since."""
        place = self._places.get(tid)
        return place is not None and bool(lib.lt_still_sleeps(self._table, place))

    def asleep(self, tids: Iterable[int]) -> set[int]:
        """Return those of which still_sleeps() is true."""
        places = ffi.new("uint32_t[]", [self._places[tid] for tid in tids if tid in self._places])
        count = lib.lt_pick_asleep(self._table, places, len(places))
        return {self._tids[place] for place in ffi.unpack(places, count)} if count else set()

    def keep_only(self, tids: Collection[int]) -> None:
        """Let go of all others."""
        if len(self._places) <= len(tids) and self._places.keys() <= set(tids):
            return
        for tid in self._places.keys() - set(tids):
            self._forget(tid)

    def close(self) -> None:
        """Close what is kept open."""
        self.keep_only(())
        if self._table.directory >= 0:
            os.close(self._table.directory)
            self._table.directory = -1

    def _directory(self) -> int:
        """Open: it stays this process's whoever has the pid later."""
        if self._table.directory < 0:
            path = f"/proc/{self._pid}/task"
            self._table.directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return int(self._table.directory)

    def _place(self, tid: int) -> int:
        place = self._places.get(tid)
        if place is None:
            if not self._empty:
                self._grow()
            place = self._places[tid] = self._empty.pop()
            self._tids[place] = tid
            lib.lt_add_task(self._table, place, tid)
        return place

    def _grow(self) -> None:
        before, count = self._table.count, max(_FIRST_ROOM, 2 * self._table.count)
        files, tasks = ffi.new("struct lt_task_files[]", count), ffi.new("struct lt_task[]", count)
        if before:
            ffi.memmove(files, self._table.files, before * ffi.sizeof("struct lt_task_files"))
            ffi.memmove(tasks, self._table.tasks, before * ffi.sizeof("struct lt_task"))
        self._table.files, self._table.tasks, self._table.count = files, tasks, count
        self._arrays = files, tasks  # they live as long as something refers to them
        self._data = ffi.buffer(tasks)
        self._tids += [0] * (count - before)
        self._empty += range(count - 1, before - 1, -1)

    def _told(self, place: int) -> TaskRecord | None:
        raw = _RAW.at(self._data, place * _RAW.size)
        if raw.known & _THERE:
            return raw
        self._forget(self._tids[place])
        return None

    def _forget(self, tid: int) -> None:
        with contextlib.suppress(KeyError):
            place = self._places.pop(tid)
            lib.lt_forget_task(self._table, place)
            self._empty.append(place)


def is_ours(error: OSError) -> bool:
    """Tell whether an error is for what we lack, and tells nothing about the process."""
    return error.errno in _LACKS


def _check(result: int) -> int:
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result
