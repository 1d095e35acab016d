"""Reads the counters of the processor and the kernel for one thread (perf_event_open(2)).

A counter that is not available has a reason of a few words; no function raises an exception. The
target does no work for the counters: the kernel reads them when it switches threads.
"""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

from msgspec import Struct

from locktop.collector.linux import procfs
from locktop.collector.model import PerfCounter, PerfCounters
from locktop.collector.native import ffi, lib

# enum perf_type_id (linux/perf_event.h).
_HARDWARE, _SOFTWARE = 0, 1


class PerfEvent(Struct, frozen=True):
    """An event that a counter can count."""

    name: str  # as in perf-list(1)
    type: int  # enum perf_type_id
    config: int  # enum perf_hw_id or perf_sw_ids
    per_unit: float = 1.0
    unit: str = ""
    by_kernel: bool = False  # the event happens in the kernel only


EVENTS = (
    PerfEvent("task-clock", _SOFTWARE, 1, 1e9, "s"),
    PerfEvent("page-faults", _SOFTWARE, 2),
    PerfEvent("context-switches", _SOFTWARE, 3, by_kernel=True),
    PerfEvent("cpu-migrations", _SOFTWARE, 4, by_kernel=True),
    PerfEvent("cycles", _HARDWARE, 0),
    PerfEvent("instructions", _HARDWARE, 1),
    PerfEvent("cache-misses", _HARDWARE, 3),
    PerfEvent("branch-misses", _HARDWARE, 5),
)

_USER_ONLY = "not in the kernel"
_SHARED = "estimated: counters take turns"
_NEVER = "no counter is free"
_ENDED = "the thread has ended"
_TOO_MANY = "too many open files"
#: The reason by the error number of perf_event_open(2).
_REASONS = {
    errno.ESRCH: _ENDED,
    errno.EMFILE: _TOO_MANY,
    errno.ENFILE: _TOO_MANY,
    errno.ENOSYS: "this kernel counts nothing",
    errno.EBUSY: "another tool has the counters",
    errno.ENOSPC: "too many counters at once",
}
_NOT_SUPPORTED = frozenset(
    {errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP, errno.ENXIO, errno.EINVAL}
)


class ThreadCounters:
    """The counters of one thread, from the creation of this object on."""

    def __init__(self, tid: int, events: tuple[PerfEvent, ...] = EVENTS) -> None:
        """``tid``: the thread's id in the pid namespace of this process."""
        self._began_at = time.monotonic()
        self._read_at = 0.0  # not yet
        self._open = [_OpenCounter(tid, event) for event in events]

    def read(self) -> PerfCounters:
        """Return the present counts. Rates are per second since the former call."""
        now = time.monotonic()
        interval_s = now - self._read_at if self._read_at else 0.0
        self._read_at = now
        counters = tuple(counter.read(interval_s) for counter in self._open)
        return PerfCounters(duration_s=now - self._began_at, counters=counters)

    def close(self) -> None:
        """Close all counters."""
        for counter in self._open:
            counter.close()


class _OpenCounter:
    """The counter of one event of a thread. The counter may be unavailable."""

    def __init__(self, tid: int, event: PerfEvent) -> None:
        self._event = event
        self._before = 0.0
        self._reason_text = ""
        self._fd = open_counter(tid, event, user_only=False)
        if -self._fd in (errno.EACCES, errno.EPERM) and not event.by_kernel:
            fd = open_counter(tid, event, user_only=True)
            if fd >= 0:
                self._fd, self._reason_text = fd, _USER_ONLY
        if self._fd < 0:
            self._reason_text = _reason(-self._fd, event)

    def read(self, interval_s: float) -> PerfCounter:
        event, why = self._event, self._reason_text
        if self._fd < 0:
            return PerfCounter(name=event.name, unit=event.unit, total=None, why=why)
        count = ffi.new("struct lt_count *")
        if not lib.lt_read_counter(self._fd, count):
            return PerfCounter(name=event.name, unit=event.unit, total=None, why=_NEVER)
        total = count.value / event.per_unit
        if 0 < count.running_ns < count.enabled_ns:
            total *= count.enabled_ns / count.running_ns
            why = ", ".join(filter(None, (why, _SHARED)))
        elif count.enabled_ns and not count.running_ns:
            return PerfCounter(name=event.name, unit=event.unit, total=None, why=_NEVER)
        # An estimated total may shrink.
        grown, self._before = max(0.0, total - self._before), total
        per_s = grown / interval_s if interval_s > 0 else 0.0
        return PerfCounter(name=event.name, unit=event.unit, total=total, per_s=per_s, why=why)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def open_counter(tid: int, event: PerfEvent, user_only: bool) -> int:
    """Return the descriptor of a thread's counter, or a negative error number."""
    return int(lib.lt_open_counter(event.type, event.config, tid, user_only))


def _reason(error: int, event: PerfEvent) -> str:
    if error in (errno.EACCES, errno.EPERM):
        return refusal_reason()
    if error in _NOT_SUPPORTED:
        if event.type == _HARDWARE and _is_virtual():
            return "this virtual machine gives none"
        return "this processor gives none" if event.type == _HARDWARE else "this kernel has none"
    return _REASONS.get(error, os.strerror(error))


def refusal_reason() -> str:
    """Return the reason for a refusal by the kernel, with the kernel's setting if readable."""
    try:
        level = int(procfs.read("/proc/sys/kernel/perf_event_paranoid"))
    except (OSError, ValueError):
        return "no right"
    return f"no right (kernel.perf_event_paranoid is {level})"


def _is_virtual() -> bool:
    """Tell whether the processor belongs to a virtual machine (x86: a flag says so)."""
    try:
        lines = Path("/proc/cpuinfo").read_bytes().splitlines()
    except OSError:
        return False
    return any(line.startswith(b"flags") and b"hypervisor" in line.split() for line in lines)
