"""What is asked only of threads that somebody looks at closely: it costs some 100 us each."""

from __future__ import annotations

import heapq
import time
from collections.abc import Collection, Mapping

from msgspec.structs import replace

from locktop.collector.linux import syscalls
from locktop.collector.linux.perf_counters import ThreadCounters
from locktop.collector.linux.threads import KernelThreads
from locktop.collector.model import ActivityState, Counters, Draft, Switches, Thread, ThreadActivity
from locktop.collector.sources.probes.native_stacks import NativeStacks
from locktop.collector.sources.probes.thread_activity import ThreadsNow

#: Of all threads, those that used most processor time.
_MAX_ASKED = 1024
#: For the words of calls: of many sockets each takes as long as the kernel's table of them.
_WORDS_S = 1.0
_NONE = (0, 0)


class FollowedThread:
    """Follows one thread of a process at a time."""

    def __init__(self, pid: int, tasks: KernelThreads) -> None:
        self._tasks = tasks
        self._now = ThreadsNow(pid, tasks)
        self._wanted = 0  # tid; set by another thread
        self._which = _NONE  # tid, when it began: ids are used again
        self._counters: ThreadCounters | None = None
        #: Tids of others that the next look asks what they do.
        self.beside: Collection[int] = ()
        #: By tid of those that sleep in a call, without those that wait for what is told: see
        #: ThreadsNow.number().
        self.sleeps: Mapping[int, tuple[int, int]] = {}
        #: Ids of their stacks, and of those that run.
        self.stacks: Collection[int] = ()

    def follow(self, tid: int) -> None:
        """Follow a thread from the next look on; 0: none."""
        self._wanted = tid

    def annotate(self, snapshot: Draft, all_of_them: bool, stacks: NativeStacks) -> None:
        """Fill in switches, counters and activity of the followed thread.

        Threads ``beside`` it get switches and activity; with ``all_of_them`` all threads do.
        ``stacks`` gives their stacks, as far as there is time.
        """
        threads = snapshot.threads
        wanted = self._wanted
        asked = {wanted, *self.beside} - {0}
        if all_of_them:
            alive = (thread for thread in threads if thread.alive)
            busiest = heapq.nlargest(_MAX_ASKED, alive, key=lambda thread: thread.cpu_s)
            asked.update(thread.tid for thread in busiest)
        counters = self._counted(wanted)
        scanned_at = {
            thread.tid: thread
            for thread in threads
            if thread.tid in asked and thread.alive and not thread.pid
        }
        now = self._doing(scanned_at, stacks)
        if not scanned_at:
            return
        snapshot.threads = tuple(
            replace(
                thread,
                switches=self._switches(thread.tid),
                counters=counters if thread.tid == wanted else None,
                now=now.get(thread.tid),
            )
            if scanned_at.get(thread.tid) is thread
            else thread
            for thread in threads
        )

    def still_asleep(self) -> dict[int, tuple[int, int]]:
        """Return those of ``sleeps`` that go on."""
        return {tid: sleep for tid, sleep in self.sleeps.items() if self._tasks.still_sleeps(tid)}

    def _counted(self, tid: int) -> Counters | None:
        try:
            which = (tid, self._tasks.start_time(tid)) if tid else _NONE
            if which != self._which:
                self.close()
                self._which = which
                self._counters = ThreadCounters(self._tasks.kernel_tid(tid)) if tid else None
        except OSError:
            self.close()  # it has ended
        return self._counters.read() if self._counters is not None else None

    def _switches(self, tid: int) -> Switches | None:
        try:
            return self._tasks.switches(tid)
        except OSError:
            return None  # it has ended

    # ---- what they do now ----

    def _doing(
        self, threads: Mapping[int, Thread], stacks: NativeStacks
    ) -> dict[int, ThreadActivity]:
        """By tid, without those that wait for what is told, and those that are no more."""
        self.stacks, self.sleeps = (), {}
        wanted = {tid: one for tid, one in threads.items() if one.waiting_for is None}
        try:
            found = self._now.asked(wanted)
            told = self._asleep(found, stacks) | self._running(found, stacks)
        except OSError:
            return {}  # we lack what asking takes, or the process is gone
        self.stacks = {now.stack for now in told.values() if now.stack}
        return told

    def _asleep(
        self, found: Mapping[int, ThreadActivity], stacks: NativeStacks
    ) -> dict[int, ThreadActivity]:
        told: dict[int, ThreadActivity] = {}
        sleeps: dict[int, tuple[int, int]] = {}
        woken: list[int] = []
        until = time.monotonic() + _WORDS_S
        for tid, now in found.items():
            if now.doing is not ActivityState.BLOCKED:
                continue
            call, (_, _, runs) = sleep = self._now.sleep(tid)
            kernel_tid = self._tasks.kernel_tid(tid)
            stack = stacks.of(kernel_tid, sleep) if call.pc else 0  # else it may not be seen
            if time.monotonic() < until:
                now = self._now.in_words(now)
            stopped = stacks.was_stopped(kernel_tid) and self._now.is_in_its_call(tid)
            if stopped or self._tasks.still_sleeps(tid):
                told[tid] = replace(now, stack=stack)
                sleeps[tid] = self._now.number(tid)
            elif runs:
                woken.append(tid)
        self.sleeps = sleeps
        return told | self._woken(woken)

    def _woken(self, tids: Collection[int]) -> dict[int, ThreadActivity]:
        """Those that got a CPU while they were asked: of their next sleep only the call is told."""
        return {
            tid: ThreadActivity(tid, ActivityState.BLOCKED, syscalls.name(now.call.number))
            if now.call is not None and now.call.pc
            else ThreadActivity(tid, ActivityState.RUNNING)
            for tid, now in (self._tasks.moments(tids) if tids else {}).items()
        }

    def _running(
        self, found: Mapping[int, ThreadActivity], stacks: NativeStacks
    ) -> dict[int, ThreadActivity]:
        """And those that are stopped."""
        told = {
            tid: now
            for tid, now in found.items()
            if now.doing is ActivityState.RUNNING or now.doing is ActivityState.STOPPED
        }
        running = {
            self._tasks.kernel_tid(tid): tid
            for tid, now in told.items()
            if now.doing is ActivityState.RUNNING
        }
        for kernel_tid, stack in stacks.running(list(running)).items():
            tid = running[kernel_tid]
            told[tid] = replace(told[tid], stack=stack)
        return told

    def close(self) -> None:
        """Count no longer."""
        if self._counters is not None:
            self._counters.close()
        self._which, self._counters = _NONE, None
