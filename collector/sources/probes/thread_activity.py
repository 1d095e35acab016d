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
#: Seconds in which a query reads since when threads sleep, some 60 us each.
_CLOCK_BUDGET_S = 0.1

#: The call in which a thread sleeps, and the scheduler's counters before: each sleep has others.
Sleep = tuple[SystemCall, tuple[int, int, int]]


class ThreadActivityProbe:
    """Queries the kernel in each scan.

    The scans that found a thread in its call show how long the call has lasted at least. Of a sleep
    from before the first query, the kernel may tell more.
    """

    def __init__(self, pid: int, tasks: KernelThreads) -> None:
        self._pid = pid
        self._tasks = tasks
        #: By tid: its sleep, since when, and whether the sleep had begun before the first query.
        self._sleeps: dict[int, tuple[Sleep, float, bool]] = {}
        self._queried_before: frozenset[int] = frozenset()  # tids
        #: By tid: its sleep, and the text of the call. The text of a socket takes milliseconds, and
        #: stays the same: the call keeps its file, even if another thread closes it.
        self._texts: dict[int, tuple[Sleep, str]] = {}

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
                since, is_lower_bound = self._sleep_begin(
                    tid, (now.call, now.counts), before.get(tid), read_at
                )
                name = syscalls.name(now.call.number)
                activities[tid] = ThreadActivity(
                    tid=tid,
                    doing=ActivityState.BLOCKED,
                    call=name,
                    duration_s=max(read_at - since, 0.0),
                    is_lower_bound=is_lower_bound,
                )
        self._queried_before = frozenset(wanted)
        self._texts = {tid: text for tid, text in self._texts.items() if tid in self._sleeps}
        return activities

    def _sleep_begin(
        self,
        tid: int,
        sleep: Sleep,
        former: tuple[Sleep, float, bool] | None,
        read_at: float,
    ) -> tuple[float, bool]:
        """Return since when a thread sleeps, and whether the sleep may have begun before."""
        is_older = tid not in self._queried_before
        if former is not None and former[0] == sleep:
            begin = former[1:]
        else:
            begin = self._begin(tid, read_at) if is_older else read_at, is_older
        # Each scan reads all threads, but queries few of them.
        longer = self._tasks.sleep_begin(tid, sleep[1])
        if longer is not None and longer.since_s < begin[0]:
            begin = longer
        self._sleeps[tid] = sleep, *begin
        return begin

    def _begin(self, tid: int, read_at: float) -> float:
        """Return the latest moment at which a sleep from before this query may have begun.

        A holder that slept before the scan read the locks has its lock still. One that fell asleep
        since then may have released it, so its sleep has no length yet.
        """
        has_time = time.monotonic() < read_at + _CLOCK_BUDGET_S
        began = self._tasks.asleep_since(tid) if has_time else None
        is_before = began is not None and began < self._tasks.locks_read_s
        return began if began is not None and is_before else read_at

    def sleep(self, tid: int) -> Sleep:
        """Return the call of a thread that ``query`` found blocked."""
        return self._sleeps[tid][0]

    def sleep_key(self, tid: int) -> tuple[int, int]:
        """Return two numbers that no other sleep of the thread has, and no observed wait."""
        _, (ran_ns, _, runs) = self.sleep(tid)
        return ran_ns, -1 - runs

    def describe(self, now: ThreadActivity) -> ThreadActivity:
        """Return the activity with the text of its call, if the thread is blocked in one."""
        if now.doing is not ActivityState.BLOCKED or now.what:
            return now
        sleep = self.sleep(now.tid)
        if self._texts.get(now.tid, ((), ""))[0] != sleep:
            self._texts[now.tid] = sleep, syscall_format.describe(self._pid, sleep[0])
        return replace(now, what=self._texts[now.tid][1])
