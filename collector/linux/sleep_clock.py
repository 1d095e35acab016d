"""Since when a thread sleeps, by the scheduler's own clock.

While a thread sleeps, ``se.exec_start`` in /proc/PID/task/TID/sched is the moment at which it left
its CPU. The clock of that moment is the CPU's own: it leaves out interrupts and time of other
guests. So a thread of locktop reads the present time on that CPU.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from locktop.collector.linux import procfs

_EXEC_START = b"se.exec_start"
_PROCESSOR = 36  # index of the field behind the name, proc_pid_stat(5)
#: The kernel may adjust the rate of the monotonic clock alone, by up to 500 ppm (adjtimex(2)).
_RATE = 0.999
#: Seconds. The time of a CPU that was read earlier gives a lower bound too, a lower one.
_MAX_AGE_S = 1.0
#: CPUs that a thread of locktop visits in a second at most: a server may have hundreds.
_MAX_VISITS = 16
#: From this version on, a sleeping thread may stay in the queue of its CPU and move to another one
#: (EEVDF, delayed dequeue). Its moment is then of the clock of an unknown CPU.
_FIRST_WITH_DELAYED = 6, 12


class _CpuTime(NamedTuple):
    """The time of a CPU's clock, read no later than ``read_at``."""

    time_s: float
    read_at: float  # time.monotonic()


class SleepClock:
    """Reads lower bounds of sleeps, and the time of each CPU at most once a second."""

    def __init__(self) -> None:
        self._cpus: dict[int, _CpuTime] = {}
        self._is_any = kernel_version() >= _FIRST_WITH_DELAYED
        self.is_available = True  # False after the kernel has shown that it does not tell

    def asleep_since(self, pid: int, tid: int) -> float | None:
        """Return a moment since which the thread has certainly slept, of time.monotonic().

        The caller checks afterwards that the thread sleeps and has not run meanwhile.

        Args:
            pid: the process.
            tid: the thread, in locktop's own pid namespace.

        Returns: None if the kernel does not tell, or if locktop may not run on that CPU.
        """
        if not self.is_available:
            return None
        try:
            slept_at = _exec_start(procfs.read(f"/proc/{pid}/task/{tid}/sched"))
            stat = procfs.read(f"/proc/{pid}/task/{tid}/stat")
            now = self._time_on(_last_cpu(stat))
        except (OSError, ValueError, KeyError, IndexError):
            self.is_available = _tells_own_time()  # else the thread has ended
            return None
        if now is None or not slept_at:
            return None
        age_s = procfs.age_s(procfs.parse_stat(stat).start_time)
        slept_s = min((now.time_s - slept_at) * _RATE, age_s)
        return now.read_at - slept_s if slept_s > 0.0 else None

    def _time_on(self, cpu: int) -> _CpuTime | None:
        """Return the time of a CPU, or the earliest time of all if the CPU is not certain."""
        allowed = os.sched_getaffinity(0)
        if cpu not in allowed:
            return None
        wanted = allowed if self._is_any else {cpu}
        oldest = time.monotonic() - max(_MAX_AGE_S, len(wanted) / _MAX_VISITS)
        if stale := {c for c in wanted if c not in self._cpus or self._cpus[c].read_at < oldest}:
            self._read_times(stale, allowed)
        times = [self._cpus[c] for c in wanted]
        return min(times, key=lambda read: read.time_s - read.read_at)

    def _read_times(self, cpus: Collection[int], allowed: Collection[int]) -> None:
        with _restored(allowed):
            for cpu in cpus:
                os.sched_setaffinity(0, {cpu})
                # The kernel has just put this thread on the CPU.
                time_s = _exec_start(procfs.read("/proc/thread-self/sched"))
                self._cpus[cpu] = _CpuTime(time_s, time.monotonic())


@contextmanager
def _restored(allowed: Collection[int]) -> Iterator[None]:
    """Let the calling thread run on the allowed CPUs again afterwards."""
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, allowed)


def kernel_version() -> tuple[int, int]:
    """Return the version of the running kernel, as (6, 12)."""
    major, minor = re.findall(r"\d+", os.uname().release)[:2]
    return int(major), int(minor)


def _last_cpu(stat: bytes) -> int:
    """Return the CPU that a thread ran on last, by its stat."""
    return int(stat[stat.rindex(b")") + 2 :].split()[_PROCESSOR])


def _tells_own_time() -> bool:
    try:
        return _exec_start(procfs.read("/proc/thread-self/sched")) > 0.0
    except (OSError, ValueError, KeyError):
        return False


def _exec_start(sched: bytes) -> float:
    """Return the moment in seconds. Raises KeyError without such a line."""
    for line in sched.splitlines():
        if line.startswith(_EXEC_START):
            return float(line.partition(b":")[2]) / 1000
    raise KeyError("the kernel does not tell when a thread last ran")
