"""Where each thread's wall clock went between two looks: keeps what the looks before said."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from locktop.collector.analysis import time_split
from locktop.collector.analysis.time_split import Used
from locktop.collector.linux import procfs
from locktop.collector.linux.threads import KernelThread
from locktop.collector.model import TimeSplit

_ALL_CONTENDED, _ALL_IDLE = TimeSplit(contended=1.0), TimeSplit(idle=1.0)
#: Clocks of the kernel and the library differ: a share above this is all.
_NEARLY_ALL = 0.999
#: Of a thread that has slept all the time.
_NOTHING = Used(0.0, 0.0, 0.0)


@dataclass(slots=True)
class _Seen:
    """One thread at the look before."""

    task: KernelThread
    until_s: float  # all before that is told, on the monotonic clock
    #: Of ``sched.queued_ns`` to come, told already: it grows only when the queueing is over.
    ahead_s: float = 0.0


class ThreadTimes:
    """The threads of one process, look after look."""

    def __init__(self) -> None:
        self._before: dict[Hashable, _Seen] = {}
        self._now: dict[Hashable, _Seen] = {}
        self._at_s = 0.0
        self._ticks_always = procfs.ticks_always()

    def begin(self, at_s: float) -> None:
        """Begin a look. ``at_s``: when the tasks were read, on the monotonic clock."""
        self._before, self._now = self._now, {}
        self._at_s = at_s

    def of(
        self,
        key: Hashable,
        task: KernelThread | None,
        contended: float,
        idle: float,
        waits_known: bool,
    ) -> TimeSplit | None:
        """Return the split of the thread that is called ``key`` in every look; the other arguments
        are as for time_split.split(). None at its first look and when it has ended."""
        if task is None:
            return None
        before = self._before.get(key)
        if before is not None and before.task is task:
            return self._of_a_sleeper(key, before, contended, idle)
        now = self._now[key] = _Seen(task, task.at_s)
        if before is None:
            return None
        interval_s = task.at_s - before.until_s
        used = self._used(before, now, interval_s)
        if used is None:
            return None
        return time_split.split(interval_s, used, contended, idle, waits_known)

    def _of_a_sleeper(
        self, key: Hashable, before: _Seen, contended: float, idle: float
    ) -> TimeSplit | None:
        """It was in one wait all the time, so it was not read."""
        since_s, before.until_s, self._now[key] = before.until_s, self._at_s, before
        if contended >= _NEARLY_ALL:
            return _ALL_CONTENDED
        if idle >= _NEARLY_ALL:
            return _ALL_IDLE
        return time_split.split(self._at_s - since_s, _NOTHING, contended, idle)

    def _used(self, before: _Seen, now: _Seen, interval_s: float) -> Used | None:
        """None where it is another thread with the same id: counters only grow."""
        was, is_ = before.task, now.task
        if not was.runs or not is_.runs:
            ran_s = is_.cpu_s - was.cpu_s
            return Used(ran_s, None, _disk_s(was, is_)) if ran_s >= 0.0 else None
        ran_ns, queued_ns = is_.ran_ns - was.ran_ns, is_.queued_ns - was.queued_ns
        if ran_ns < 0 or queued_ns < 0 or is_.runs < was.runs:
            return None
        queued_s, seen_s = queued_ns / 1e9, 0.0
        if before.ahead_s:
            told = min(before.ahead_s, queued_s)
            queued_s, now.ahead_s = queued_s - told, before.ahead_s - told
        if not ran_ns and is_.runs == was.runs and is_.state == was.state:
            if is_.state == "R" and self._ticks_always:
                # In the queue since before the last look, and not counted before it gets a CPU.
                now.ahead_s += interval_s
                queued_s = interval_s
            elif is_.state == "D":
                seen_s = interval_s
        return Used(ran_ns / 1e9, queued_s, _disk_s(was, is_), seen_s)


def _disk_s(was: KernelThread, is_: KernelThread) -> float | None:
    if is_.disk_ticks is None:
        return None
    return (is_.disk_ticks - (was.disk_ticks or 0)) * procfs.CLOCK_TICK_S
