"""Details of the thread that the user follows: they cost some 100 us for each thread."""

from __future__ import annotations

import heapq
import time
from collections.abc import Collection, Iterable, Mapping
from functools import partial

from msgspec.structs import replace

from locktop.collector.linux import syscalls
from locktop.collector.linux.perf_counters import ThreadCounters
from locktop.collector.linux.threads import KernelThreads
from locktop.collector.model import (
    ActivityState,
    Draft,
    PerfCounters,
    Switches,
    Thread,
    ThreadActivity,
)
from locktop.collector.sources.probes.native_stacks import NativeStacks
from locktop.collector.sources.probes.thread_activity import ThreadActivityProbe

#: Queried threads at most: the threads that used most CPU time.
MAX_QUERIED = 1024
#: Seconds for the text of calls alone: each socket takes as long as the kernel's table of them.
_DESCRIBE_BUDGET_S = 1.0
#: Seconds in which a query of all threads samples running ones: a thread on a CPU takes 1 ms.
_RUNNING_BUDGET_S = 0.1
_NONE = (0, 0)


class FollowedThread:
    """Follows one thread of a process at a time."""

    def __init__(self, pid: int, tasks: KernelThreads) -> None:
        self._tasks = tasks
        self._probe = ThreadActivityProbe(pid, tasks)
        self._wanted = 0  # tid; another thread sets it
        self._followed = _NONE  # tid and start time of the thread, because ids are reused
        self._counters: ThreadCounters | None = None
        #: Ids of further threads that the next scan queries.
        self.also_queried: Collection[int] = ()
        #: By tid of threads that sleep in a call, without observed waits: see
        #: ThreadActivityProbe.sleep_key().
        self.sleeps: Mapping[int, tuple[int, int]] = {}
        #: Ids of the stacks of these threads and of running ones.
        self.stacks: Collection[int] = ()

    def follow(self, tid: int) -> None:
        """Follow a thread from the next scan on; 0: none."""
        self._wanted = tid

    def annotate(self, snapshot: Draft, include_all: bool, stacks: NativeStacks) -> None:
        """Fill in switches, counters and activity of the followed thread.

        Threads in ``also_queried`` get switches and activity. So does the only thread that does
        not wait, which may have what others wait for.

        Args:
            snapshot: the draft.
            include_all: query all threads in the same way.
            stacks: unwinds their stacks, as far as there is time.
        """
        threads = snapshot.threads
        wanted = self._wanted
        queried = {wanted, *self.also_queried, only_thread_that_goes_on(threads)} - {0}
        if include_all:
            alive = (thread for thread in threads if thread.alive)
            busiest = heapq.nlargest(MAX_QUERIED, alive, key=lambda thread: thread.cpu_s)
            queried.update(thread.tid for thread in busiest)
        counters = self._read_counters(wanted)
        by_tid = {
            thread.tid: thread
            for thread in (threads if queried else ())
            if thread.tid in queried and thread.alive and not thread.pid
        }
        now = self._activities(by_tid, stacks, _RUNNING_BUDGET_S if include_all else 0.0)
        if not by_tid:
            return
        snapshot.threads = tuple(
            replace(
                thread,
                switches=self._switches(thread.tid),
                counters=counters if thread.tid == wanted else None,
                now=now.get(thread.tid),
            )
            if by_tid.get(thread.tid) is thread
            else thread
            for thread in threads
        )

    def still_asleep(self) -> dict[int, tuple[int, int]]:
        """Return the ``sleeps`` that go on."""
        return {tid: sleep for tid, sleep in self.sleeps.items() if self._tasks.still_sleeps(tid)}

    def _read_counters(self, tid: int) -> PerfCounters | None:
        try:
            followed = (tid, self._tasks.start_time(tid)) if tid else _NONE
            if followed != self._followed:
                self.close()
                self._followed = followed
                self._counters = ThreadCounters(self._tasks.kernel_tid(tid)) if tid else None
        except OSError:
            self.close()  # it has ended
        return self._counters.read() if self._counters is not None else None

    def _switches(self, tid: int) -> Switches | None:
        try:
            return self._tasks.switches(tid)
        except OSError:
            return None  # it has ended

    # ---- activity ----

    def _activities(
        self, threads: Mapping[int, Thread], stacks: NativeStacks, running_budget_s: float
    ) -> dict[int, ThreadActivity]:
        """Return activities by tid, without threads in observed waits and without ended ones."""
        self.stacks, self.sleeps = (), {}
        wanted = {tid: thread for tid, thread in threads.items() if thread.waiting_for is None}
        try:
            queried = self._probe.query(wanted)
            activities = self._blocked_threads(queried, stacks)
            activities |= self._running(queried, stacks, running_budget_s)
        except OSError:
            return {}  # locktop lacks descriptors, or the process is gone
        self.stacks = {now.stack for now in activities.values() if now.stack}
        return activities

    def _blocked_threads(
        self, queried: Mapping[int, ThreadActivity], stacks: NativeStacks
    ) -> dict[int, ThreadActivity]:
        activities: dict[int, ThreadActivity] = {}
        sleeps: dict[int, tuple[int, int]] = {}
        woken: list[int] = []
        left_s = _DESCRIBE_BUDGET_S
        blocked = {tid: now for tid, now in queried.items() if now.doing is ActivityState.BLOCKED}
        # All stacks before any text: the text of one call may take the time of all stacks.
        stack_ids = {tid: self._sleep_stack(tid, stacks) for tid in blocked}
        for tid, now in blocked.items():
            if left_s > 0:
                began = time.monotonic()
                now = self._probe.describe(now)
                left_s -= time.monotonic() - began
            kernel_tid, stack = self._tasks.kernel_tid(tid), stack_ids[tid]
            if (stack and stacks.was_stopped(kernel_tid)) or self._tasks.still_sleeps(tid):
                activities[tid] = replace(now, stack=stack)
                sleeps[tid] = self._probe.sleep_key(tid)
            elif self._probe.sleep(tid)[1][2]:
                woken.append(tid)
        self.sleeps = sleeps
        return activities | self._woken_activities(woken)

    def _sleep_stack(self, tid: int, stacks: NativeStacks) -> int:
        """Return the id of the stack of a thread that the query found asleep; 0 unknown."""
        call, _ = sleep = self._probe.sleep(tid)
        if not call.pc:  # locktop may not see the call
            return 0
        still_sleeps = partial(self._tasks.still_sleeps, tid)
        kernel_tid = self._tasks.kernel_tid(tid)
        return stacks.stack_id(kernel_tid, sleep, asleep=(call, still_sleeps))

    def _woken_activities(self, tids: Collection[int]) -> dict[int, ThreadActivity]:
        """Return the activity of threads that ran during the query: of the next sleep only the
        call.
        """
        return {
            tid: ThreadActivity(
                tid=tid, doing=ActivityState.BLOCKED, call=syscalls.name(now.call.number)
            )
            if now.call is not None and now.call.pc
            else ThreadActivity(tid=tid, doing=ActivityState.RUNNING)
            for tid, now in (self._tasks.moments(tids) if tids else {}).items()
        }

    def _running(
        self, queried: Mapping[int, ThreadActivity], stacks: NativeStacks, budget_s: float
    ) -> dict[int, ThreadActivity]:
        """Return the activities of running and of stopped threads."""
        activities = {
            tid: now
            for tid, now in queried.items()
            if now.doing is ActivityState.RUNNING or now.doing is ActivityState.STOPPED
        }
        running = {
            self._tasks.kernel_tid(tid): tid
            for tid, now in activities.items()
            if now.doing is ActivityState.RUNNING
        }
        for kernel_tid, stack in stacks.running(list(running), budget_s).items():
            tid = running[kernel_tid]
            activities[tid] = replace(activities[tid], stack=stack)
        return activities

    def close(self) -> None:
        """Stop counting."""
        if self._counters is not None:
            self._counters.close()
        self._followed, self._counters = _NONE, None


def only_thread_that_goes_on(threads: Iterable[Thread]) -> int:
    """Return the only living thread that waits for nothing, while others wait; 0: none, or more."""
    alive = [thread for thread in threads if thread.alive and not thread.pid]
    going_on = [thread.tid for thread in alive if thread.waiting_for is None]
    others = (thread.waiting_for for thread in alive if thread.waiting_for is not None)
    is_unknown = any(not wait.holders for wait in others)
    return going_on[0] if len(going_on) == 1 and is_unknown else 0
