"""Registers and stacks of threads at a steady rate of their processor time (perf_event_open(2)).

The kernel writes each sample to a ring, with the time of CLOCK_MONOTONIC. The thread gets no
signal. The cost is an interrupt and a copy of at most 8 KiB.

With the right to do so, each CPU has one event and one ring. Such an event costs nothing when a CPU
changes to another thread. The samples of other processes are dropped unread. Otherwise each thread
has an event and a ring. The kernel then stops and starts a timer at each change of threads. So some
samples of threads that switch often are unfair (sample_timing.py).
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from locktop.collector.linux import procfs
from locktop.collector.linux.perf_counters import refusal_reason
from locktop.collector.native import ffi, lib
from locktop.collector.symbols.unwind.arch import Architecture
from locktop.collector.symbols.unwind.perf_sample import RefusedError
from locktop.collector.symbols.unwind.sample_timing import EventTimer, UsualDelay
from locktop.collector.symbols.unwind.stack_memory import StackCopy

#: Bytes of a ring, powers of two: some 14 samples or 7. The smaller one is for users who may lock
#: little memory.
_RINGS = (1 << 17, 1 << 16)
_BATCH = 16  # samples
_ONLINE = Path("/sys/devices/system/cpu/online")
#: Threads that are sampled at once, as in struct lt_wanted_threads.
MAX_FOLLOWED = 64
#: Machines with more CPUs than this have an event for each thread: each round reads all rings.
_MAX_CPUS = 64


class TimedCopy(NamedTuple):
    """A thread's registers and stack, and when they were copied."""

    tid: int
    time_ns: int  # CLOCK_MONOTONIC
    copy: StackCopy


class _Ring(NamedTuple):
    fd: int
    memory: mmap.mmap
    size: int
    timer: EventTimer | None = None  # None: all samples are fair


class SampleStream:
    """Samples several threads. One thread uses this.

    Attributes:
        may_be_wide: whether events of whole CPUs are used, as far as is known.
        refused: why the kernel refuses samples, "" as far as it does not.
        is_full: whether the last thread found no memory for its ring.
        sampled: the number of threads that are sampled, or were when samples ended.
    """

    def __init__(self, architecture: Architecture, rate: float) -> None:
        """``rate``: samples in a second of a CPU, for events of whole CPUs."""
        self._architecture = architecture
        self._first_period_ns = self._cpu_period_ns = round(1e9 / rate)
        self._period_ns = 0  # of the events of threads; 0: no thread has an event
        self._usual: UsualDelay | None = None  # None: the period is steady
        self._ran_ns = self._stood_ns = 0  # see stretch
        self._registers = sampled_registers(architecture)
        self._rings: dict[int, _Ring] = {}  # by tid
        self._cpus: dict[int, _Ring] = {}  # by CPU; empty if each thread has a ring
        self._samples = ffi.new("struct lt_stream_sample[]", _BATCH)
        self._wanted = ffi.new("struct lt_wanted_threads *")
        self._lost = ffi.new("uint64_t *")
        self.threads: frozenset[int] = frozenset()  #: the ids of follow()
        self.may_be_wide = True
        self.refused = ""
        self.is_full = False
        self.sampled = 0

    @property
    def lost(self) -> int:
        """Samples that found no room in a ring."""
        return int(self._lost[0])

    def follow(self, tids: Iterable[int]) -> None:
        """Choose the threads to sample, as far as there is memory, and no others.

        Events of whole CPUs begin at once, if they were not ended. For events of threads, see
        begin().

        Args:
            tids: at most MAX_FOLLOWED ids of our own pid namespace.
        """
        wanted = tuple(tids)[:MAX_FOLLOWED]
        self.threads = frozenset(wanted)
        living = [tid for tid in wanted if tid > 0]
        self._wanted.tids[0 : len(living)] = living
        self._wanted.count = len(living)
        if not wanted:
            self._end_all(self._cpus)
        elif not self._cpus and self.may_be_wide:
            self.may_be_wide = self._begin_cpus()
        if self._cpus:
            self.sampled = len(wanted)
        elif self._period_ns:
            self._follow_each()

    def _begin_cpus(self) -> bool:
        """Sample all CPUs. Return False if that is not possible, and sample none."""
        cpus = _online_cpus()
        # The kernel counts the threads of samples as we do.
        if len(cpus) > _MAX_CPUS or not procfs.counts_as_we_do():
            return False
        for cpu in cpus:
            try:
                fd = open_stream(-1, self._first_period_ns, self._registers, cpu)
            except RefusedError:
                break
            ring = _map_ring(fd)
            if ring is None:
                break
            self._cpus[cpu] = ring
        self._cpu_period_ns = self._first_period_ns
        if self._cpus and len(self._cpus) == len(cpus):
            return True
        self._end_all(self._cpus)
        return False

    def begin(self, period_s: float, is_varied: bool = False) -> None:
        """Give each followed thread an event, and the threads that will be followed too.

        Events of whole CPUs go on with another period.

        Args:
            period_s: seconds of a thread's or CPU's time between its samples, in the mean.
            is_varied: whether the period changes, and unfair samples are dropped. This is for
                threads that switch often.
        """
        period_ns = round(1e9 * period_s)
        if self._cpus:
            self._run_cpus(period_ns)
            return
        if period_ns == self._period_ns:
            return
        self.end()
        self._period_ns = period_ns
        self._usual = (self._usual or UsualDelay()) if is_varied else None
        self._ran_ns //= 2
        self._stood_ns //= 2
        self._follow_each()

    @property
    def stretch(self) -> float:
        """How many periods a sample stands for, because others were dropped as unfair."""
        return max(1.0, self._ran_ns / self._stood_ns) if self._usual and self._stood_ns else 1.0

    def end(self) -> None:
        """Sample nothing. Samples of threads' events that were not read are lost."""
        self._run_cpus(0)
        self._end_all(self._rings)
        self._period_ns = 0

    def _run_cpus(self, period_ns: int) -> None:
        if period_ns != self._cpu_period_ns:
            for ring in self._cpus.values():
                lib.lt_run_stream(ring.fd, period_ns)
        self._cpu_period_ns = period_ns

    def _follow_each(self) -> None:
        self.is_full = False
        for tid in self._rings.keys() - self.threads:
            _end(self._rings.pop(tid))
        for tid in self.threads:
            if tid not in self._rings and not self.is_full and not self.refused:
                self._begin(tid)
        self.sampled = len(self._rings)

    def _begin(self, tid: int) -> None:
        try:
            fd = open_stream(tid, self._period_ns, self._registers)
        except RefusedError as error:
            self.refused = str(error)
            return
        if fd < 0:
            return
        ring = _map_ring(fd)
        if ring is not None:
            timer = EventTimer(self._period_ns, self._usual) if self._usual else None
            self._rings[tid] = ring._replace(timer=timer)
            return
        self.is_full = True
        if not self._rings:
            self.refused = "no memory may be locked for samples (kernel.perf_event_mlock_kb)"

    @property
    def is_wide(self) -> bool:
        """Whether the events are those of whole CPUs."""
        return bool(self._cpus)

    def read(self) -> Iterator[TimedCopy]:
        """Yield the samples since the last call, those of one ring in the order of time."""
        for ring in (self._cpus or self._rings).values():
            mapped = ffi.from_buffer(ring.memory)
            try:
                count = _BATCH
                while count == _BATCH:
                    count = lib.lt_read_stream(
                        mapped, mmap.PAGESIZE, ring.size, self._registers, self._wanted,
                        self._samples, _BATCH, self._lost,
                    )  # fmt: skip
                    for index in range(count):
                        if ring.timer is None or self._is_fair(self._samples[index], ring.timer):
                            yield self._copy(self._samples[index])
            finally:
                ffi.release(mapped)
            if ring.timer is not None:
                _vary(ring.fd, ring.timer)

    def _is_fair(self, raw: Any, timer: EventTimer) -> bool:
        before_ns = timer.ran_ns
        is_fair = timer.is_fair(int(raw.time), int(raw.ran))
        self._ran_ns += timer.ran_ns - before_ns
        self._stood_ns += is_fair * self._period_ns
        return is_fair

    def _copy(self, raw: Any) -> TimedCopy:
        values = dict(enumerate(ffi.unpack(raw.registers, len(self._architecture.perf))))
        registers = self._architecture.dwarf_registers(values)
        stack = bytes(ffi.buffer(raw.stack, raw.stack_size))
        copy = StackCopy(registers, stack, registers[self._architecture.sp])
        return TimedCopy(int(raw.tid), int(raw.time), copy)

    def close(self) -> None:
        """Sample no thread any more."""
        self.end()
        self._end_all(self._cpus)

    @staticmethod
    def _end_all(rings: dict[int, _Ring]) -> None:
        for ring in rings.values():
            _end(ring)
        rings.clear()


def _online_cpus() -> tuple[int, ...]:
    """Return the numbers of the CPUs that run; () if they are not known."""
    try:
        return cpu_numbers(_ONLINE.read_text())
    except (OSError, ValueError):
        return ()


def cpu_numbers(listed: str) -> tuple[int, ...]:
    """Return the numbers of a list as the kernel writes it, such as ``0-2,5``.

    Raises ValueError if the text is no such list.
    """
    numbers: list[int] = []
    for part in listed.split(","):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return tuple(numbers)


def _map_ring(fd: int) -> _Ring | None:
    """Return the ring of a descriptor; None, with the descriptor closed, if memory lacks."""
    for size in _RINGS:
        with contextlib.suppress(OSError):
            return _Ring(fd, mmap.mmap(fd, mmap.PAGESIZE + size), size)
    os.close(fd)
    return None


def _vary(fd: int, timer: EventTimer) -> None:
    period_ns = timer.next_period()
    if period_ns and not lib.lt_run_stream(fd, period_ns):
        timer.changed(period_ns, time.monotonic_ns())


def _end(ring: _Ring) -> None:
    ring.memory.close()
    os.close(ring.fd)


def sampled_registers(architecture: Architecture) -> int:
    """Return the registers of a sample as the kernel wants them: a bit for each."""
    return sum(
        1 << number for number, dwarf_number in enumerate(architecture.perf) if dwarf_number >= 0
    )


def open_stream(tid: int, period_ns: int, registers: int, cpu: int = -1) -> int:
    """Return the descriptor; -1 if the thread has ended. Raises RefusedError.

    Args:
        tid: the thread; of no use with a CPU.
        period_ns: nanoseconds between samples.
        registers: a bit for each register.
        cpu: the CPU of which all threads are sampled; -1: one thread.
    """
    if cpu >= 0:
        fd = int(lib.lt_open_cpu_stream(cpu, period_ns, registers))
        if fd < 0:
            raise RefusedError(os.strerror(-fd).lower())
        return fd
    fd = int(lib.lt_open_stream(tid, period_ns, registers, False))
    if -fd in (errno.EACCES, errno.EPERM):
        fd = int(lib.lt_open_stream(tid, period_ns, registers, True))
    if fd >= 0 or -fd == errno.ESRCH:
        return max(fd, -1)
    if -fd in (errno.EACCES, errno.EPERM):
        raise RefusedError(refusal_reason())
    if -fd == errno.ENOSYS:
        raise RefusedError("no perf_event_open: a seccomp filter, or the kernel, lacks it")
    raise RefusedError(os.strerror(-fd).lower())
