"""What threads do at this moment, as the kernel tells it."""

from __future__ import annotations

import time
from collections.abc import Mapping

from msgspec.structs import replace

from locktop.collector.linux import syscall_format, syscalls
from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.linux.threads import KernelThreads
from locktop.collector.model import ActivityState, Thread, ThreadActivity

_STOPPED = "tT"
#: In which a thread that was stopped gets a CPU.
_BACK_S = 0.1

#: In which call a thread sleeps, and what the scheduler counted of it before: another sleep has
#: another one.
Sleep = tuple[SystemCall, tuple[int, int, int]]


class ThreadsNow:
    """Asks look after look: how long a thread has been in its call is known only from the looks
    that found it there."""

    def __init__(self, pid: int, tasks: KernelThreads) -> None:
        self._pid = pid
        self._tasks = tasks
        #: By tid: its sleep, since when, and whether it had begun before.
        self._since: dict[int, tuple[Sleep, float, bool]] = {}
        self._asked_before: frozenset[int] = frozenset()  # tids

    def asked(self, threads: Mapping[int, Thread | None]) -> dict[int, ThreadActivity]:
        """Return what each does, by tid, of one that sleeps in a call without its words and stack;
        None stands for a thread of which the look says nothing. That one sleeps is so only if
        KernelThreads.still_sleeps() says it afterwards. Raises OSError for what we lack."""
        before, self._since = self._since, {}
        told: dict[int, ThreadActivity] = {}
        for tid, thread in threads.items():
            if thread is None or not thread.alive:
                told[tid] = ThreadActivity(
                    tid, ActivityState.ENDED if thread else ActivityState.UNKNOWN
                )
            elif thread.waiting_for is not None:
                wait = thread.waiting_for
                told[tid] = ThreadActivity(
                    tid,
                    ActivityState.WAITING,
                    duration_s=wait.duration_s,
                    is_lower_bound=wait.is_lower_bound,
                )
        wanted = [tid for tid in threads if tid not in told]
        found, at = self._tasks.moments(wanted), time.monotonic()
        for tid in wanted:
            now, thread = found.get(tid), threads[tid]
            if now is None:
                told[tid] = ThreadActivity(tid, ActivityState.ENDED)
            elif now.state in _STOPPED:
                told[tid] = ThreadActivity(tid, ActivityState.STOPPED)
            elif now.state == "R" or now.call is None:
                time_ = thread.time if thread is not None else None
                told[tid] = ThreadActivity(
                    tid, ActivityState.RUNNING, cpu=time_.cpu if time_ else None
                )
            else:
                sleep = now.call, now.counts
                known = before.get(tid)
                if known is not None and known[0] == sleep:
                    self._since[tid] = known
                else:
                    self._since[tid] = sleep, at, tid not in self._asked_before
                _, since, is_lower_bound = self._since[tid]
                name = syscalls.name(now.call.number)
                told[tid] = ThreadActivity(
                    tid,
                    ActivityState.BLOCKED,
                    name,
                    duration_s=at - since,
                    is_lower_bound=is_lower_bound,
                )
        self._asked_before = frozenset(wanted)
        return told

    def sleep(self, tid: int) -> Sleep:
        """Return in which call a thread sleeps that was just told to be blocked."""
        return self._since[tid][0]

    def number(self, tid: int) -> tuple[int, int]:
        """Return two numbers of that sleep that no other one of the thread has, and no wait."""
        _, (ran_ns, _, runs) = self.sleep(tid)
        return ran_ns, -1 - runs

    def is_in_its_call(self, tid: int) -> bool:
        """Tell whether a thread that was stopped is in the call that it was told to be in; begun
        anew it may have another number. Let go after a stop it may have to wait for a CPU before it
        goes back there."""
        asked, _ = self.sleep(tid)
        until = time.monotonic() + _BACK_S
        try:
            while (call := self._tasks.call(tid)) is None and time.monotonic() < until:
                time.sleep(_BACK_S / 100)
        except OSError:
            return False
        return call is not None and call[1:] == asked[1:]

    def in_words(self, now: ThreadActivity) -> ThreadActivity:
        """Return it with the words of its call, if it is blocked in one."""
        if now.doing is not ActivityState.BLOCKED or now.what:
            return now
        return replace(now, what=syscall_format.describe(self._pid, self.sleep(now.tid)[0]))
