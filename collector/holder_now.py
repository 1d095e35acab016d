"""What the threads that hold contended locks do at this moment."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from locktop.collector import call_words, syscalls
from locktop.collector.model import Doing, Frame, HolderNow, Lock, Thread
from locktop.collector.outside_stacks import OutsideStacks
from locktop.collector.syscalls import Call
from locktop.collector.tasks import Tasks

#: Locks of one look whose holders are asked: those with the most waiters.
_MOST_ASKED = 32
_STOPPED = "tT"


class Holders:
    """Asks about the holders, look after look: how long one has been in its call is known only from
    the looks that found it there."""

    def __init__(self, pid: int, tasks: Tasks, stacks: OutsideStacks) -> None:
        self._pid = pid
        self._tasks = tasks
        self._stacks = stacks
        self._told: set[int] = set()  # stacks
        self._since: dict[int, tuple[object, float]] = {}  # by tid: its call, since when

    def told(self, locks: Sequence[Lock], threads: Sequence[Thread]) -> tuple[Lock, ...]:
        """Return the locks, those that others wait for with what their holder does now."""
        contended = [lock for lock in locks if lock.waiters and lock.holders and not lock.idle]
        contended.sort(key=lambda lock: -len(lock.waiters))
        by_tid = {thread.tid: thread for thread in threads if not thread.pid}
        before, self._since, self._told = self._since, {}, set()
        asked: dict[int, HolderNow] = {}
        found: dict[int, HolderNow] = {}
        for lock in contended[:_MOST_ASKED]:
            tid = _which(lock, by_tid)
            if tid not in asked:
                asked[tid] = self._now(tid, by_tid.get(tid), before)
            found[lock.id] = asked[tid]
        if not found:
            return tuple(locks)
        return tuple(
            replace(lock, holder_now=found[lock.id]) if lock.id in found else lock for lock in locks
        )

    def _now(
        self, tid: int, thread: Thread | None, before: Mapping[int, tuple[object, float]]
    ) -> HolderNow:
        if thread is None or not thread.alive:
            return HolderNow(tid, Doing.ENDED if thread else Doing.UNKNOWN)
        if thread.waiting_for is not None:
            return HolderNow(tid, Doing.WAITING, for_s=thread.waiting_for.for_s)
        state = self._tasks.states([tid])[tid]
        if not state:
            return HolderNow(tid, Doing.ENDED)
        if state in _STOPPED:
            return HolderNow(tid, Doing.STOPPED)
        return HolderNow(tid, Doing.RUNNING) if state == "R" else self._blocked(tid, before)

    def _blocked(self, tid: int, before: Mapping[int, tuple[object, float]]) -> HolderNow:
        try:
            kernel_tid, counts = self._tasks.kernel_tid(tid), self._tasks.counts(tid)
            call = self._tasks.call(tid)
        except PermissionError:
            call = Call(-1, (), 0, 0)
        except OSError:
            return HolderNow(tid, Doing.ENDED)
        if call is None:
            return HolderNow(tid, Doing.RUNNING)  # meanwhile
        now, where = time.monotonic(), (call, counts)
        known = before.get(tid)
        since = known[1] if known is not None and known[0] == where else now
        self._since[tid] = where, since
        name, what = syscalls.name(call.number), call_words.described(self._pid, call)
        stack = self._stacks.of(kernel_tid, where)
        if stack:
            self._told.add(stack)
        return HolderNow(tid, Doing.BLOCKED, name, what, now - since, stack)

    def stacks(self) -> dict[int, tuple[Frame, ...]]:
        """Return the stacks of the holders that were told last, as far as they are named."""
        return {stack: self._stacks.frames(stack) for stack in self._told}


def _which(lock: Lock, threads: Mapping[int, Thread]) -> int:
    """Of several readers the one that has had it longest and does not wait itself, if there is one:
    it is the one that the others wait for."""

    def rank(tid: int) -> tuple[bool, float]:
        thread = threads.get(tid)
        if thread is None:
            return True, 0.0
        held = next((held.for_s for held in thread.holds if held.lock == lock.id), None)
        return thread.waiting_for is not None, -(held or 0.0)

    return min(lock.holders, key=rank)
