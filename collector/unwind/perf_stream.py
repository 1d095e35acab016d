"""Registers and stacks of threads at a steady rate of their processor time (perf_event_open(2)).

The kernel writes each sample to a ring of the thread, with the time of CLOCK_MONOTONIC. The thread
gets no signal. The cost is an interrupt and a copy of at most 8 KiB.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import struct
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from locktop.collector.linux.perf_counters import no_right
from locktop.collector.native import ffi, lib
from locktop.collector.unwind.arch import Architecture
from locktop.collector.unwind.perf_sample import RefusedError
from locktop.collector.unwind.stack_memory import StackCopy

#: Bytes of a ring, powers of two: some 14 samples or 7. The smaller one is for users who may lock
#: little memory.
_RINGS = (1 << 17, 1 << 16)
_BATCH = 16  # samples
#: perf_event_open(2), PERF_EVENT_IOC_*.
_ENABLE, _DISABLE, _SET_PERIOD = 0x2400, 0x2401, 0x40082404


class TimedCopy(NamedTuple):
    """A thread's registers and stack, and when they were copied."""

    tid: int
    time_ns: int  # CLOCK_MONOTONIC
    copy: StackCopy


class _Ring(NamedTuple):
    fd: int
    memory: mmap.mmap
    size: int


class SampleStream:
    """Samples several threads, each into a ring of its own. One thread uses this.

    Attributes:
        refused: why the kernel refuses samples, "" as far as it does not.
        is_full: whether the last thread found no memory for its ring.
    """

    def __init__(self, architecture: Architecture, rate: float) -> None:
        """``rate``: samples in a second of a thread's processor time."""
        self._architecture = architecture
        self._period_ns = round(1e9 / rate)
        self._registers = sum(
            1 << number for number, known in enumerate(architecture.perf) if known >= 0
        )
        self._rings: dict[int, _Ring] = {}  # by tid
        self._samples = ffi.new("struct lt_stream_sample[]", _BATCH)
        self._lost = ffi.new("uint64_t *")
        self.refused = ""
        self.is_full = False

    @property
    def lost(self) -> int:
        """Samples that found no room in a ring."""
        return int(self._lost[0])

    @property
    def threads(self) -> frozenset[int]:
        """The ids of the threads that are sampled."""
        return frozenset(self._rings)

    def follow(self, tids: Iterable[int]) -> None:
        """Sample these threads from now on, as far as there is memory, and no others."""
        wanted = list(tids)
        for tid in self._rings.keys() - set(wanted):
            self._end(tid)
        self.is_full = False
        for tid in wanted:
            if tid not in self._rings and not self.is_full and not self.refused:
                self._begin(tid)

    def _begin(self, tid: int) -> None:
        try:
            fd = open_stream(tid, self._period_ns, self._registers)
        except RefusedError as error:
            self.refused = str(error)
            return
        if fd < 0:
            return
        for size in _RINGS:
            with contextlib.suppress(OSError):
                memory = mmap.mmap(fd, mmap.PAGESIZE + size)
                self._rings[tid] = _Ring(fd, memory, size)
                return
        os.close(fd)
        self.is_full = True
        if not self._rings:
            self.refused = "no memory may be locked for samples (kernel.perf_event_mlock_kb)"

    def _end(self, tid: int) -> None:
        ring = self._rings.pop(tid)
        ring.memory.close()
        os.close(ring.fd)

    def switch(self, on: bool) -> None:
        """Sample all threads or none. The rest of a period goes on later."""
        for ring in self._rings.values():
            with contextlib.suppress(OSError):  # the thread has ended
                fcntl.ioctl(ring.fd, _ENABLE if on else _DISABLE, 0)

    def set_period(self, period_s: float) -> None:
        """Sample each ``period_s`` of a thread's processor time. A new period begins."""
        period = struct.pack("=Q", round(1e9 * period_s))
        for ring in self._rings.values():
            with contextlib.suppress(OSError):
                fcntl.ioctl(ring.fd, _SET_PERIOD, period)

    def read(self) -> Iterator[TimedCopy]:
        """Yield the samples since the last call. Those of one thread are in the order of time."""
        for tid, ring in self._rings.items():
            mapped = ffi.from_buffer(ring.memory)
            try:
                count = _BATCH
                while count == _BATCH:
                    count = lib.lt_read_stream(
                        mapped, mmap.PAGESIZE, ring.size, self._registers,
                        self._samples, _BATCH, self._lost,
                    )  # fmt: skip
                    for at in range(count):
                        yield self._copy(tid, self._samples[at])
            finally:
                ffi.release(mapped)

    def _copy(self, tid: int, raw: Any) -> TimedCopy:
        values = dict(enumerate(ffi.unpack(raw.registers, len(self._architecture.perf))))
        found = self._architecture.of_perf(values)
        stack = bytes(ffi.buffer(raw.stack, raw.stack_size))
        return TimedCopy(tid, int(raw.time), StackCopy(found, stack, found[self._architecture.sp]))

    def close(self) -> None:
        """Sample no thread any more."""
        for tid in list(self._rings):
            self._end(tid)


def open_stream(tid: int, period_ns: int, registers: int) -> int:
    """Return the descriptor; -1 if the thread has ended. Raises RefusedError."""
    fd = int(lib.lt_open_stream(tid, period_ns, registers, False))
    if -fd in (errno.EACCES, errno.EPERM):
        fd = int(lib.lt_open_stream(tid, period_ns, registers, True))
    if fd >= 0 or -fd == errno.ESRCH:
        return max(fd, -1)
    if -fd in (errno.EACCES, errno.EPERM):
        raise RefusedError(no_right())
    if -fd == errno.ENOSYS:
        raise RefusedError("no perf_event_open: a seccomp filter, or the kernel, lacks it")
    raise RefusedError(os.strerror(-fd).lower())
