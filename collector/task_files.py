"""The files of /proc about each thread of a process, kept open between looks and read many at a
time: reading an open one costs less than half of opening it anew."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from locktop.collector.abi import Record, ffi, lib

_MOST_KEPT = 4096  # threads
_AT_ONCE = 256
_THERE: int = lib.LT_TASK_THERE
#: In place of a second file that cannot be opened.
_NONE = -1


class RawTask(NamedTuple):
    """struct lt_task."""

    at_ns: int
    cpu_ticks: int
    disk_ticks: int
    ran_ns: int
    queued_ns: int
    runs: int
    known: int
    name_size: int
    state: int
    name: bytes


_RAW = Record(RawTask, "struct lt_task")

Pair = tuple[int, int]  # descriptors: of stat, of schedstat


class TaskFiles:
    """Those of one process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._open: dict[int, Pair] = {}
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        # There are two of each thread, and others need descriptors too.
        self._most = min(soft * 3 // 8, _MOST_KEPT)
        if soft == resource.RLIM_INFINITY:
            self._most = _MOST_KEPT

    def read(self, tids: Sequence[int]) -> Iterator[RawTask | None]:
        """Return what they say of each thread, in order; None of one that has ended."""
        for first in range(0, len(tids), _AT_ONCE):
            yield from self._read_batch(tids[first : first + _AT_ONCE])

    def _read_batch(self, tids: Sequence[int]) -> list[RawTask | None]:
        pairs = [self._open.get(tid) or self._opened(tid) for tid in tids]
        count = len(tids)
        tasks = ffi.new("struct lt_task[]", count)
        fds = [fd for pair in pairs for fd in pair]
        lib.lt_read_tasks(ffi.new("int32_t[]", fds), count, tasks)
        data, found = ffi.buffer(tasks), []
        for number, tid in enumerate(tids):
            raw = _RAW.at(data, number * _RAW.size)
            there = bool(raw.known & _THERE)
            found.append(raw if there else None)
            pair = pairs[number]
            if not there or (tid not in self._open and len(self._open) >= self._most):
                self._open.pop(tid, None)  # the id may come back with another thread
                _close(pair)
            else:
                self._open[tid] = pair
        return found

    def _opened(self, tid: int) -> Pair:
        stat = self._descriptor(tid, "stat")
        return stat, self._descriptor(tid, "schedstat") if stat != _NONE else _NONE

    def _descriptor(self, tid: int, name: str) -> int:
        try:
            return os.open(f"/proc/{self._pid}/task/{tid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return _NONE

    def keep_only(self, tids: list[int]) -> None:
        """Close those of other threads."""
        if len(self._open) <= len(tids) and self._open.keys() <= set(tids):
            return
        for tid in self._open.keys() - set(tids):
            _close(self._open.pop(tid))

    def close(self) -> None:
        """Close all."""
        self.keep_only([])


def _close(pair: Pair) -> None:
    for fd in pair:
        if fd != _NONE:
            os.close(fd)
