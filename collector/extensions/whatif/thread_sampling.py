"""Samples the threads of a live process: their states and times, and the CPUs of other programs."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from random import Random

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.whatif.analysis.evidence import (
    BegunThread,
    StateSample,
    ThreadTimes,
)
from locktop.collector.linux import procfs, syscalls
from locktop.collector.linux.target import find_process
from locktop.collector.linux.threads import KernelThreads

#: Readings of thread states in a second: of all threads, and of one.
_READS_PER_S, _MAX_HZ = 2000, 50.0
#: A reading that took longer says too little about the moment.
_MAX_READ_NS = 100_000
_NS = 1_000_000_000
_ENDED = frozenset({b"Z", b"X"})
#: Of so many readings of sleeping threads one also reads the system call.
_READS_OF_CALLS = 4
#: System calls in which threads wait for the requests of others.
_FOR_REQUESTS = frozenset({
    "accept", "accept4", "epoll_pwait", "epoll_pwait2", "epoll_wait", "poll", "ppoll", "pselect6",
    "recvfrom", "recvmmsg", "recvmsg", "select",
})  # fmt: skip


class ThreadSampling:
    """The kernel's view of some threads: their states, their times, and the CPUs of others."""

    def __init__(self, pid: int, tids: Iterable[int]) -> None:
        """``tids``: of the pid namespace of the process."""
        self._pid = pid
        self._random = Random(pid)
        self.samples: list[StateSample] = []
        self._files: dict[int, int] = {}  # descriptors of stat by tid
        self._first: dict[int, tuple[int, int]] = {}
        self._last: dict[int, tuple[int, int]] = {}
        tasks = KernelThreads(pid, find_process(pid).own_pid)
        self._directories = {tid: f"/proc/{pid}/task/{tasks.kernel_tid(tid)}" for tid in tids}
        tasks.close()
        for tid in self._directories:
            self._open(tid)
        self._lasting = dict(self._directories)  # without those that begin in the span
        self._seen = set(self._directories.values())
        self.begun: dict[int, BegunThread] = {}
        self.from_ns = self.to_ns = 0
        self._busy_s = 0.0
        self.cpu_ns = 0  # of the whole program
        self._sleeps, self._requests = Counter[int](), Counter[int]()

    def close(self) -> None:
        for file in self._files.values():
            os.close(file)

    def _open(self, tid: int) -> None:
        with contextlib.suppress(OSError):  # the thread ended, or no descriptor is left
            self._files[tid] = os.open(f"{self._directories[tid]}/stat", os.O_RDONLY)

    def _open_new(self) -> None:
        """Sample the threads that began meanwhile, too."""
        with contextlib.suppress(OSError):  # the process ended
            for kernel_tid in procfs.tids(self._pid):
                directory = f"/proc/{self._pid}/task/{kernel_tid}"
                if directory in self._seen:
                    continue
                self._seen.add(directory)
                with contextlib.suppress(OSError):  # the thread ended
                    tid = procfs.own_tid(self._pid, kernel_tid)
                    self._directories[tid] = directory
                    self._open(tid)

    def sample(self, duration_s: float, check: Callable[[], None]) -> None:
        """Read the states of the threads again and again, for some seconds.

        Args:
            duration_s: seconds.
            check: is called after each reading; what it raises ends the sampling.

        Raises:
            LocktopError: the process has ended.
        """
        pause_s = max(1 / _MAX_HZ, len(self._files) / _READS_PER_S)
        self._first, busy_s = self._scheds(), _busy_s(self._pid)
        cpu_ns = _cpu_ns(self._pid)
        self.from_ns = time.time_ns()
        end = time.monotonic() + duration_s
        while (left_s := end - time.monotonic()) > 0:
            self._open_new()
            for tid, file in [*self._files.items()]:
                self._sample_one(tid, file)
            # Not at one pace with the program.
            time.sleep(min(left_s, pause_s * self._random.uniform(0.5, 1.5)))
            if not self._files and has_ended(self._pid):
                raise ended(self._pid)
            check()
        self.to_ns = time.time_ns()
        self._last, self._busy_s = self._scheds(), _busy_s(self._pid) - busy_s
        self.cpu_ns = _cpu_ns(self._pid) - cpu_ns

    def _sample_one(self, tid: int, file: int) -> None:
        before_ns = time.time_ns()
        try:
            stat = os.pread(file, 256, 0)
        except OSError:  # the thread ended
            os.close(self._files.pop(tid))
            return
        after_ns = time.time_ns()
        state = stat[stat.rfind(b")") + 2 :][:1]
        if state in _ENDED:  # the first thread of a process keeps its files
            os.close(self._files.pop(tid))
            return
        if after_ns - before_ns < _MAX_READ_NS:
            self.samples.append(StateSample(tid, (before_ns + after_ns) // 2, state == b"R"))
        if tid not in self._lasting:
            with contextlib.suppress(OSError, ValueError, IndexError):
                _, queued_ns = _sched_times(self._directories[tid])
                self.begun[tid] = BegunThread(after_ns, queued_ns)
        if state == b"S" and not self._random.randrange(_READS_OF_CALLS):
            self._read_call(tid)

    def _read_call(self, tid: int) -> None:
        """Read in which system call a thread sleeps."""
        with contextlib.suppress(OSError, ValueError):  # without the right to trace, or it ended
            with open(f"{self._directories[tid]}/syscall", "rb") as file:
                call = syscalls.parse(file.read())
            if call is not None:
                self._sleeps[tid] += 1
                self._requests[tid] += syscalls.name(call.number) in _FOR_REQUESTS

    def request_shares(self) -> dict[int, float]:
        """Return the share of the sleep in which threads wait for requests, by tid."""
        return {tid: self._requests[tid] / count for tid, count in self._sleeps.items()}

    def _scheds(self) -> dict[int, tuple[int, int]]:
        """Return the time on a CPU and in the queue of each thread, nanoseconds."""
        scheds = {}
        for tid, directory in self._lasting.items():
            with contextlib.suppress(OSError, ValueError, IndexError):
                scheds[tid] = _sched_times(directory)
        return scheds

    def times(self, names: Mapping[int, str]) -> dict[int, ThreadTimes]:
        """Return the times of each thread in the span."""
        times = {}
        for tid, (cpu_ns, queued_ns) in self._last.items():
            first = self._first.get(tid, (0, 0))
            times[tid] = ThreadTimes(
                name=names.get(tid, ""), cpu_ns=cpu_ns - first[0], queued_ns=queued_ns - first[1]
            )
        return times

    def others_cpus(self) -> float:
        """Return how many CPUs other programs used, of those that the process may use."""
        span_s = (self.to_ns - self.from_ns) / _NS
        return max(0.0, (self._busy_s - self.cpu_ns / _NS) / span_s) if span_s else 0.0


def ended(pid: int) -> LocktopError:
    """Return the error for a process that ended too early."""
    return LocktopError(f"process {pid} ended while its locks were recorded")


def has_ended(pid: int) -> bool:
    """Tell whether a process has no living thread."""
    for tid in _tids(pid):
        with contextlib.suppress(OSError, ValueError):  # the thread ended
            if procfs.thread_stat(pid, tid).state.encode() not in _ENDED:
                return False
    return True


def _tids(pid: int) -> list[int]:
    try:
        return procfs.tids(pid)
    except OSError:
        return []


def _sched_times(directory: str) -> tuple[int, int]:
    """Return a thread's time on a CPU and in the queue, nanoseconds (proc(5), schedstat)."""
    with open(f"{directory}/schedstat", "rb") as file:
        words = file.read().split()
    return int(words[0]), int(words[1])


def _cpu_ns(pid: int) -> int:
    """Return the CPU time of a program with all its threads, also those that ended.

    The number of the clock is that of clock_getcpuclockid(3).
    """
    with contextlib.suppress(OSError):
        return time.clock_gettime_ns((~pid << 3) | 2)
    return 0


def _busy_s(pid: int) -> float:
    """Return the time for which the CPUs of a process were busy, seconds (proc(5), /proc/stat).

    Without that file, the time is 0. Raises LocktopError if the process has ended.
    """
    try:
        allowed = {b"cpu%d" % cpu for cpu in os.sched_getaffinity(pid)}
    except ProcessLookupError:
        raise ended(pid) from None
    ticks = 0
    with contextlib.suppress(OSError), open("/proc/stat", "rb") as file:
        for line in file:
            words = line.split()
            if words and words[0] in allowed:
                numbers = [int(word) for word in words[1:9]]
                ticks += sum(numbers) - numbers[3] - numbers[4]  # without idle and iowait
    return ticks / os.sysconf("SC_CLK_TCK")
