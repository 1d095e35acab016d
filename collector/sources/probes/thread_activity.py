"""The activity of threads at this moment, as the kernel shows it."""

from __future__ import annotations

import time
from collections.abc import Mapping

from msgspec.structs import replace

from locktop.collector.linux import syscall_format, syscalls
from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.linux.threads import KernelThreads
from locktop.collector.model import ActivityState, Thread, ThreadActivity

_STOPPED = "tT"
#: Seconds within which a thread that was stopped gets a CPU.
_BACK_S = 0.1

#: The call in which a thread sleeps, and the scheduler's counters before: each sleep has others.
Sleep = tuple[SystemCall, tuple[int, int, int]]


class ThreadActivityProbe:
    """Queries the kernel in each scan.

    Only the scans that found a thread in its call show how long the call has lasted.
    """

    def __init__(self, pid: int, tasks: KernelThreads) -> None:
        self._pid = pid
        self._tasks = tasks
        #: By tid: its sleep, since when, and whether the sleep had begun before the first query.
        self._sleeps: dict[int, tuple[Sleep, float, bool]] = {}
        self._queried_before: frozenset[int] = frozenset()  # tids

    def query(self, threads: Mapping[int, Thread | None]) -> dict[int, ThreadActivity]:
        """Return the activity of each thread by tid.

        The text and the stack of a system call are left out. A thread is asleep only if
        Tasks.still_sleeps() confirms it afterwards.

        Args:
            threads: the threads by tid; None for a thread that the scan does not show.

        Raises:
            OSError: locktop lacks descriptors, or the process is gone.
        """
        before, self._sleeps = self._sleeps, {}
        activities: dict[int, ThreadActivity] = {}
        for tid, thread in threads.items():
            if thread is None or not thread.alive:
                activities[tid] = ThreadActivity(
                    tid=tid, doing=ActivityState.ENDED if thread else ActivityState.UNKNOWN
                )
            elif thread.waiting_for is not None:
                wait = thread.waiting_for
                activities[tid] = ThreadActivity(
                    tid=tid,
                    doing=ActivityState.WAITING,
                    duration_s=wait.duration_s,
                    is_lower_bound=wait.is_lower_bound,
                )
        wanted = [tid for tid in threads if tid not in activities]
        moments, read_at = self._tasks.moments(wanted), time.monotonic()
        for tid in wanted:
            now, thread = moments.get(tid), threads[tid]
            if now is None:
                activities[tid] = ThreadActivity(tid=tid, doing=ActivityState.ENDED)
            elif now.state in _STOPPED:
                activities[tid] = ThreadActivity(tid=tid, doing=ActivityState.STOPPED)
            elif now.state == "R" or now.call is None:
                time_ = thread.time if thread is not None else None
                activities[tid] = ThreadActivity(
                    tid=tid, doing=ActivityState.RUNNING, cpu=time_.cpu if time_ else None
                )
            else:
                sleep = now.call, now.counts
                former = before.get(tid)
                if former is not None and former[0] == sleep:
                    self._sleeps[tid] = former
                else:
                    self._sleeps[tid] = sleep, read_at, tid not in self._queried_before
                _, since, is_lower_bound = self._sleeps[tid]
                name = syscalls.name(now.call.number)
                activities[tid] = ThreadActivity(
                    tid=tid,
                    doing=ActivityState.BLOCKED,
                    call=name,
                    duration_s=read_at - since,
                    is_lower_bound=is_lower_bound,
                )
        self._queried_before = frozenset(wanted)
        return activities

    def sleep(self, tid: int) -> Sleep:
        """Return the call of a thread that ``query`` found blocked."""
        return self._sleeps[tid][0]

    def sleep_key(self, tid: int) -> tuple[int, int]:
        """Return two numbers that no other sleep of the thread has, and no observed wait."""
        _, (ran_ns, _, runs) = self.sleep(tid)
        return ran_ns, -1 - runs

    def is_back_in_call(self, tid: int) -> bool:
        """Return whether a thread that was stopped is in the same call as before.

        A restarted call may have another number. After a stop the thread may have to wait for a CPU
        before it goes back to its call.
        """
        query, _ = self.sleep(tid)
        until = time.monotonic() + _BACK_S
        try:
            while (call := self._tasks.call(tid)) is None and time.monotonic() < until:
                time.sleep(_BACK_S / 100)
        except OSError:
            return False
        return call is not None and call[1:] == query[1:]

    def describe(self, now: ThreadActivity) -> ThreadActivity:
        """Return the activity with the text of its call, if the thread is blocked in one."""
        if now.doing is not ActivityState.BLOCKED or now.what:
            return now
        return replace(now, what=syscall_format.describe(self._pid, self.sleep(now.tid)[0]))
