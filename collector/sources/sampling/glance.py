"""One quick sample of a process without the library: which threads wait for locks.

A glance costs a tenth of the first scan, and proves no deadlock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from locktop.collector.errors import LocktopError
from locktop.collector.linux import futex, procfs, ptrace_access
from locktop.collector.linux.sleep_clock import SleepClock
from locktop.collector.linux.target import find_process
from locktop.collector.model.kinds import CONTENTION_KINDS, Kind
from locktop.collector.sources import preloadable
from locktop.collector.sources.sampling.libc_info import CLibrary
from locktop.collector.sources.sampling.sampled_wait import SampledWait
from locktop.collector.sources.sampling.sampler import Sample, Sampler
from locktop.collector.sources.sampling.wait_objects import SampledWaitReader
from locktop.collector.symbols.python.interpreter import is_interpreter_module

#: Threads of which a glance reads since when they sleep, some 60 us each.
_MAX_QUERIED = 32
#: The kind of threading.Lock without the library (docs/sampling.md).
_OF_PYTHON = frozenset({Kind.SEM})


class Sleep(NamedTuple):
    """A sleep of a thread in a futex call. If two are equal, the thread did not run in between."""

    address: int  # of the futex
    stack_pointer: int
    cpu_s: float
    runnable_s: float


class Glance(NamedTuple):
    """The sleeps that one sample of a process shows."""

    #: The sleeps for locks by tid. Waits for semaphores and in unknown futex calls are left out:
    #: most of them are for work.
    for_locks: Mapping[int, Sleep]
    #: All sleeps of a process of several threads whose threads all sleep in futex calls without a
    #: time limit; else none. No thread of such a process can wake another.
    of_all: Mapping[int, Sleep]
    #: The sleeps for semaphores in a process that runs Python: some of these may be its locks. Only
    #: the names of functions tell them from waits for work.
    for_python: Mapping[int, Sleep]
    #: Seconds that the longest of the sleeps for locks has lasted at least; 0.0: not known.
    longest_s: float = 0.0


def glance(pid: int, clock: SleepClock | None = None) -> Glance | None:
    """Return what one sample shows.

    Args:
        pid: the process.
        clock: reads since when threads sleep; None: leave that out.

    Returns: None if the process cannot be sampled.
    """
    try:
        target = find_process(pid)
        # Yama logs each refusal.
        if ptrace_access.yama_scope() and ptrace_access.forbids_tracing(pid):
            return None
        if preloadable.is_of_32_bits(f"{procfs.shared_directory(pid)}/exe"):
            return None
        sampler = Sampler(pid, target.own_pid)
    except (LocktopError, OSError, ValueError):
        return None
    try:
        samples = sampler.take()
        if not sampler.is_counted:
            return None
        calls = {
            tid: futex.parse_wait(pid, sample.call)
            for tid, sample in samples.items()
            if sample.call is not None
        }
        sleeps = {
            tid: Sleep(call.address, sample.call.sp, sample.cpu_s, sample.runnable_s)
            for tid, sample in samples.items()
            if sample.call is not None and (call := calls[tid]) is not None
        }
        if not sleeps:
            return Glance({}, {}, {})
        libc = CLibrary(pid)
        reader = SampledWaitReader(pid, libc.version, lambda pc: False, libc.may_wait_at)
        waits = reader.read(samples, sampler.still_sleeps)
        for_locks = _sleeps_for(CONTENTION_KINDS, waits, sleeps)
        is_python = libc.has_mapped(is_interpreter_module)
        for_python = _sleeps_for(_OF_PYTHON, waits, sleeps) if is_python else {}
        longest_s = _longest_s(pid, sampler, [samples[tid] for tid in for_locks], clock)
    except OSError:
        return None
    finally:
        sampler.close()
    is_timed = any(call is not None and call.timed for call in calls.values())
    nobody_runs = 1 < len(samples) == len(sleeps) and not is_timed
    return Glance(for_locks, sleeps if nobody_runs else {}, for_python, longest_s)


def _sleeps_for(
    kinds: Collection[Kind], waits: Mapping[int, SampledWait], sleeps: Mapping[int, Sleep]
) -> dict[int, Sleep]:
    return {
        tid: sleeps[tid]
        for tid, wait in waits.items()
        if wait.sync_object.kind in kinds and tid in sleeps
    }


def _longest_s(
    pid: int, sampler: Sampler, sleepers: Sequence[Sample], clock: SleepClock | None
) -> float:
    """Return how long the longest of some sleeps has lasted at least; 0.0: not known."""
    begins = [sampler.sampled_at]
    if clock is None:
        return 0.0
    for sample in sleepers[:_MAX_QUERIED]:
        began = clock.asleep_since(pid, sample.kernel_tid)
        if began is not None and sampler.still_sleeps(sample):
            begins.append(began)
    return sampler.sampled_at - min(begins)
