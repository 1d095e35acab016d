"""The split of each thread's wall clock time between two scans."""

from __future__ import annotations

from collections.abc import Hashable

from msgspec import Struct

from locktop.collector.analysis import time_split
from locktop.collector.analysis.time_split import Used
from locktop.collector.linux import procfs
from locktop.collector.linux.threads import KernelThread
from locktop.collector.model import TimeSplit

_ALL_CONTENDED, _ALL_IDLE = TimeSplit(contended=1.0), TimeSplit(idle=1.0)
#: The clocks of the kernel and of the library differ: a share above this counts as all.
_NEARLY_ALL = 0.999
#: The use of a thread that slept all the time.
_NOTHING = Used(0.0, 0.0, 0.0)


class _LastTask(Struct, gc=False):
    """One thread at the last scan."""

    task: KernelThread
    until_s: float  # the time up to here is accounted for, on the monotonic clock
    #: Part of future ``sched.queued_ns`` that is accounted for already: the kernel adds it only at
    #: the end of the queueing.
    ahead_s: float = 0.0


class TimeAccounting:
    """The threads of one process, kept from scan to scan."""

    def __init__(self) -> None:
        self._before: dict[Hashable, _LastTask] = {}
        self._now: dict[Hashable, _LastTask] = {}
        self._at_s = 0.0
        self._ticks_always = procfs.ticks_always()

    def begin(self, at_s: float) -> None:
        """Begin a scan. ``at_s``: when the tasks were read, on the monotonic clock."""
        self._before, self._now = self._now, {}
        self._at_s = at_s

    def time_split(
        self,
        key: Hashable,
        task: KernelThread | None,
        contended: float,
        idle: float,
        waits_known: bool,
    ) -> TimeSplit | None:
        """Return the split of a thread; None in its first scan and after its end.

        Args:
            key: identifies the thread in all scans.
            task: the kernel's view of the thread; None after its end.
            contended: see time_split.split().
            idle: see time_split.split().
            waits_known: see time_split.split().
        """
        if task is None:
            return None
        last = self._before.get(key)
        if last is None:
            self._now[key] = _LastTask(task, task.at_s)
            return None
        self._now[key] = last
        if last.task is task:
            return self._sleeper_split(last, contended, idle)
        interval_s = task.at_s - last.until_s
        used = self._use_since(last, task, interval_s)
        last.task, last.until_s = task, task.at_s
        if used is None:
            return None
        return time_split.split(interval_s, used, contended, idle, waits_known)

    def _sleeper_split(self, last: _LastTask, contended: float, idle: float) -> TimeSplit | None:
        """The thread was in one wait all the time, so its task was not read."""
        since_s, last.until_s = last.until_s, self._at_s
        if contended >= _NEARLY_ALL:
            return _ALL_CONTENDED
        if idle >= _NEARLY_ALL:
            return _ALL_IDLE
        return time_split.split(self._at_s - since_s, _NOTHING, contended, idle)

    def _use_since(self, last: _LastTask, is_: KernelThread, interval_s: float) -> Used | None:
        """Return the use since the last scan, and bring ``ahead_s`` up to date.

        None: another thread has the same id, for counters only grow.
        """
        was, ahead_s, last.ahead_s = last.task, last.ahead_s, 0.0
        if not was.runs or not is_.runs:
            ran_s = is_.cpu_s - was.cpu_s
            return Used(ran_s, None, _disk_s(was, is_)) if ran_s >= 0.0 else None
        ran_ns, queued_ns = is_.ran_ns - was.ran_ns, is_.queued_ns - was.queued_ns
        if ran_ns < 0 or queued_ns < 0 or is_.runs < was.runs:
            return None
        if not ahead_s and ran_ns:  # most threads: nothing is estimated
            disk_s = _disk_s(was, is_) if is_.disk_ticks is not None else None
            return Used(ran_ns / 1e9, queued_ns / 1e9, disk_s)
        queued_s, seen_s = queued_ns / 1e9, 0.0
        if ahead_s:
            counted = min(ahead_s, queued_s)
            queued_s, last.ahead_s = queued_s - counted, ahead_s - counted
        if not ran_ns and is_.runs == was.runs and is_.state == was.state:
            if is_.state == "R" and self._ticks_always:
                # In the queue since before the last scan; the kernel counts that only when the
                # thread gets a CPU.
                last.ahead_s += interval_s
                queued_s = interval_s
            elif is_.state == "D":
                seen_s = interval_s
        return Used(ran_ns / 1e9, queued_s, _disk_s(was, is_), seen_s)


def _disk_s(was: KernelThread, is_: KernelThread) -> float | None:
    if is_.disk_ticks is None:
        return None
    return (is_.disk_ticks - (was.disk_ticks or 0)) * procfs.CLOCK_TICK_S
