"""Registers and stacks of running threads, one sample of each (perf_event_open(2)).

The kernel takes a sample where its clock interrupts the thread. The thread goes on at once: a
sample costs a copy of at most 32 KiB. A software clock is enough, so virtual machines work too.
"""

from __future__ import annotations

import errno
import mmap
import os
import select
import time
from collections.abc import Iterable
from contextlib import ExitStack

from locktop.collector.linux import saved_process
from locktop.collector.linux.perf_counters import refusal_reason
from locktop.collector.native import ffi, lib
from locktop.collector.symbols.unwind.arch import Architecture
from locktop.collector.symbols.unwind.stack_memory import StackCopy

#: Processor time of a thread until its sample.
_PERIOD_NS = 100_000
#: Bytes for one sample, a power of two; one more page is mapped before them.
_RING = max(2 * lib.LT_SAMPLE_STACK, mmap.PAGESIZE)
#: Threads at once: a user without rights may map so many rings (kernel.perf_event_mlock_kb).
MAX_SAMPLED = 4


#: Bytes: as much of a stack as the kernel copies at most (PERF_SAMPLE_STACK_USER).
_MAX_SAVED_STACK = 1 << 16


class RefusedError(Exception):
    """The kernel refuses samples; the message is a few words for the user."""


def copies(
    tids: Iterable[int], architecture: Architecture, patience_s: float
) -> dict[int, StackCopy]:
    """Return copies of the threads that ran within some time.

    Args:
        tids: At most MAX_SAMPLED thread ids, of our own pid namespace.
        architecture: The processor.
        patience_s: How long to wait for the samples.

    Returns:
        The copies by tid.

    Raises:
        RefusedError: The kernel lets us take no samples.
    """
    wanted = list(tids)
    if wanted and saved_process.thread_of(wanted[0]) is not None:
        return _saved_copies(wanted, architecture)
    registers = sum(
        1 << number for number, dwarf_number in enumerate(architecture.perf) if dwarf_number >= 0
    )
    with ExitStack() as stack:
        samplers: dict[int, _SampleRing] = {}
        for tid in wanted:
            fd = open_sampler(tid, registers)
            if fd >= 0:
                stack.callback(os.close, fd)
                try:
                    ring = stack.enter_context(mmap.mmap(fd, mmap.PAGESIZE + _RING))
                except OSError as error:  # no more memory may be locked
                    raise RefusedError(os.strerror(error.errno or errno.EPERM)) from None
                samplers[fd] = _SampleRing(tid, ring)
        return _take_samples(samplers, registers, architecture, time.monotonic() + patience_s)


def _saved_copies(tids: Iterable[int], architecture: Architecture) -> dict[int, StackCopy]:
    """Return the copies of threads that a core has."""
    copies_by_tid = {}
    for tid in tids:
        thread = saved_process.thread_of(tid)
        if thread is not None:
            sp = thread.registers[architecture.sp]
            stack = saved_process.memory_of_thread(tid, sp, _MAX_SAVED_STACK)
            copies_by_tid[tid] = StackCopy(dict(thread.registers), stack, sp)
    return copies_by_tid


class _SampleRing:
    """The ring of one thread."""

    def __init__(self, tid: int, ring: mmap.mmap) -> None:
        self.tid = tid
        self._ring = ring

    def read(self, registers: int, architecture: Architecture) -> StackCopy | None:
        """Return the sample; None if there is none."""
        sample = ffi.new("struct lt_sample *")
        mapped = ffi.from_buffer(self._ring)
        if not lib.lt_read_sample(mapped, mmap.PAGESIZE, _RING, registers, sample):
            return None
        values = {number: sample.registers[number] for number in range(len(architecture.perf))}
        registers_by_number = architecture.dwarf_registers(values)
        stack = bytes(ffi.buffer(sample.stack, sample.stack_size))
        return StackCopy(registers_by_number, stack, registers_by_number[architecture.sp])


def open_sampler(tid: int, registers: int) -> int:
    """Return the descriptor of a thread's sampler; -1 if the thread has ended.

    Raises:
        RefusedError: The kernel lets us take no samples.
    """
    fd = int(lib.lt_open_sampler(tid, _PERIOD_NS, registers, False))
    if -fd in (errno.EACCES, errno.EPERM):
        fd = int(lib.lt_open_sampler(tid, _PERIOD_NS, registers, True))
    if fd >= 0 or -fd == errno.ESRCH:
        return max(fd, -1)
    raise RefusedError(
        refusal_reason() if -fd in (errno.EACCES, errno.EPERM) else os.strerror(-fd).lower()
    )


def _take_samples(
    samplers: dict[int, _SampleRing], registers: int, architecture: Architecture, until: float
) -> dict[int, StackCopy]:
    poll = select.poll()
    waited: set[int] = set()
    for fd in samplers:
        if not lib.lt_take_sample(fd):
            poll.register(fd, select.POLLIN)
            waited.add(fd)
    copies_by_tid: dict[int, StackCopy] = {}
    while waited and (left_s := until - time.monotonic()) > 0:
        for fd, _ in poll.poll(1000 * left_s):
            poll.unregister(fd)
            waited.discard(fd)
            copy = samplers[fd].read(registers, architecture)
            if copy is not None:
                copies_by_tid[samplers[fd].tid] = copy
    return copies_by_tid
