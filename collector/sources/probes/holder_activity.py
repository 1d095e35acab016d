"""What the threads that hold contended locks do at this moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from locktop.collector.linux import syscalls
from locktop.collector.linux.threads import KernelThreads
from locktop.collector.model import (
    ActivityState,
    Draft,
    Frame,
    Kind,
    Lock,
    Thread,
    ThreadActivity,
)
from locktop.collector.sources.probes.native_stacks import NativeStacks
from locktop.collector.sources.probes.python_stacks import PythonStacks
from locktop.collector.sources.probes.thread_activity import ThreadsNow

#: Locks of one look whose holders are asked: those in a deadlock, and those with the most waiters.
_MAX_ASKED = 32
#: Of these each release wakes a waiter, where there is one.
_WAKING = frozenset({Kind.MUTEX, Kind.RWLOCK, Kind.SEM})
#: How many of those that wait are asked in which call they do.
_MAX_CALLS = 3

#: Of threads and locks that they had, the ids of the locks that they have, as it is read now.
StillHolds = Callable[[Collection[tuple[int, Lock]]], Collection[int]]


class _Seen(NamedTuple):
    """Where a thread was asleep."""

    began: int  # the thread: another one may have its id
    stack: int
    at: float  # time.monotonic()


class Holders:
    """Asks about the holders, look after look."""

    def __init__(
        self,
        pid: int,
        tasks: KernelThreads,
        stacks: NativeStacks,
        python: PythonStacks,
        holds: StillHolds,
    ) -> None:
        self._now = ThreadsNow(pid, tasks)
        self._python = python
        #: Tids of those, at the last look, that are blocked in Python code.
        self.in_python: frozenset[int] = frozenset()
        self._tasks = tasks
        self._stacks = stacks
        self._holds = holds
        self._told: set[int] = set()  # stacks
        self._asleep_at: dict[int, _Seen] = {}  # by tid: where it was seen asleep last
        self._closely: frozenset[int] | None = None

    def follow(self, locks: Collection[int] | None) -> None:
        """Look where in the code the holders are of these locks alone, by id; None: of all."""
        self._closely = None if locks is None else frozenset(locks)

    def annotate(self, snapshot: Draft, all_of_them: bool) -> None:
        """Fill in what the holders of contended locks do now.

        With ``all_of_them`` the code location of every holder is asked for, not only of those that
        are followed. Nothing changes where descriptors run out, or where the process is gone.
        """
        try:
            snapshot.locks = self._asked_of(snapshot, all_of_them)
        except OSError:
            self._told = set()

    def _asked_of(self, snapshot: Draft, all_of_them: bool) -> tuple[Lock, ...]:
        self.in_python = frozenset()
        locks, first = snapshot.locks, snapshot.deadlocked
        contended = [lock for lock in locks if lock.waiters and lock.holders and not lock.idle]
        contended.sort(key=lambda lock: (lock.id not in first, -len(lock.waiters)))
        contended = contended[:_MAX_ASKED]
        by_tid = {thread.tid: thread for thread in snapshot.threads if not thread.pid}
        self._told = set()
        which = {lock.id: _which(lock, by_tid) for lock in contended}
        asked = self._now.asked({tid: by_tid.get(tid) for tid in which.values()})
        # One that is in a system call may have given the lock back since the look. It has not where
        # it slept so at the look before already, and it has the lock where it has it afterwards and
        # has slept on.
        having = self._holds([
            (now.tid, lock)
            for lock in contended
            if (now := asked[which[lock.id]]).doing is ActivityState.BLOCKED and not now.duration_s
        ])  # fmt: skip
        held: dict[int, Lock] = {}  # by tid: one that it is asked for
        found: dict[int, int] = {}  # by lock: tid
        for lock in contended:
            tid = which[lock.id]
            if asked[tid].doing is ActivityState.BLOCKED:
                if not asked[tid].duration_s and lock.id not in having:
                    continue
                asked[tid] = self._now.in_words(asked[tid])
                if not self._tasks.still_sleeps(tid):
                    continue
            found[lock.id] = tid
            if all_of_them or self._closely is None or lock.id in self._closely or lock.id in first:
                held.setdefault(tid, lock)
        if not found:
            return tuple(locks)
        self._asleep_at = {tid: seen for tid, seen in self._asleep_at.items() if tid in asked}
        asked |= self._blocked_where(asked, held)
        asked |= self._running_where(asked, held, by_tid)
        asked |= self._with_python(asked)
        self._told = {now.stack for now in asked.values() if now.stack}
        return tuple(
            replace(lock, holder_activity=asked[found[lock.id]]) if lock.id in found else lock
            for lock in locks
        )

    def _blocked_where(
        self, asked: Mapping[int, ThreadActivity], held: Mapping[int, Lock]
    ) -> dict[int, ThreadActivity]:
        found: dict[int, ThreadActivity] = {}
        for tid in held:
            now = asked[tid]
            if (
                now.doing is ActivityState.BLOCKED and self._now.sleep(tid)[0].pc
            ):  # else it may not be seen
                kernel_tid = self._tasks.kernel_tid(tid)
                stack = self._stacks.of(kernel_tid, self._now.sleep(tid))
                # To be stopped puts it on a CPU.
                stopped = self._stacks.was_stopped(kernel_tid) and self._now.is_in_its_call(tid)
                if stack and (stopped or self._tasks.still_sleeps(tid)):
                    found[tid] = replace(now, stack=stack)
                    self._asleep_at[tid] = _Seen(self._began(tid), stack, time.monotonic())
        return found

    def _with_python(self, asked: Mapping[int, ThreadActivity]) -> dict[int, ThreadActivity]:
        """Those of which it is known which functions of Python's they are in."""
        blocked = {
            tid: now
            for tid, now in asked.items()
            if now.doing is ActivityState.BLOCKED
            and now.stack
            and self._python.runs_in({now.stack: self._stacks.frames(now.stack)})
        }
        self.in_python = frozenset(blocked)
        return {
            tid: replace(now, stack=stack)
            for tid, now in blocked.items()
            if (stack := self._python.of_sleep(tid, self._now.number(tid)))
        }

    def _running_where(
        self,
        asked: Mapping[int, ThreadActivity],
        held: Mapping[int, Lock],
        threads: Mapping[int, Thread],
    ) -> dict[int, ThreadActivity]:
        """A thread that runs may have let go of the lock since the look, and be anywhere. It has
        not where all that wait for the lock were asleep all the while, and it has the lock
        afterwards: who gives back a lock that others wait for wakes one of them."""
        asleep = {
            tid: self._asleep(lock) if _wakes(lock, tid, threads) else None
            for tid, lock in held.items()
            if asked[tid].doing is ActivityState.RUNNING
        }
        kernel_tids = {tid: self._tasks.kernel_tid(tid) for tid in asleep}
        stacks = self._stacks.running([kernel_tids[tid] for tid, known in asleep.items() if known])
        found: dict[int, ThreadActivity] = {}
        for tid, kernel_tid in kernel_tids.items():
            lock, now = held[tid], asked[tid]
            stack = stacks.get(kernel_tid, 0)
            if stack and self._asleep(lock) == asleep[tid] and self._holds([(tid, lock)]):
                found[tid] = replace(now, stack=stack)
            elif (seen := self._asleep_at.get(tid)) is not None and (
                seen.began == self._began(tid)
            ):
                age_s = time.monotonic() - seen.at
                found[tid] = replace(now, stack=seen.stack, stack_age_s=age_s)
        return found

    def _began(self, tid: int) -> int:
        try:
            return self._tasks.start_time(tid)
        except (OSError, ValueError):
            return -1

    def _asleep(self, lock: Lock) -> dict[int, int] | None:
        """How often each that waits for the lock was put on a CPU before it slept; None where one
        is awake, or none sleeps in the call that is woken (but in a handler of signals)."""
        asleep = self._tasks.asleep(lock.waiters)
        if asleep.keys() != set(lock.waiters):
            return None
        return asleep if any(map(self._waits, lock.waiters[:_MAX_CALLS])) else None

    def _waits(self, tid: int) -> bool:
        try:
            call = self._tasks.call(tid)
        except OSError:
            return False
        return call is not None and syscalls.is_futex(call.number)

    def stacks(self) -> dict[int, tuple[Frame, ...]]:
        """Return the stacks of the holders that were told last, as far as they are named."""
        return {stack: self._python.of(stack) for stack in self._told}

    def notes(self) -> Iterable[str]:
        """Yield what cannot be known of holders, and why."""
        if self._stacks.refused:
            yield f"of threads that run it is not seen where in the code: {self._stacks.refused}"


def _wakes(lock: Lock, holder: int, threads: Mapping[int, Thread]) -> bool:
    """Whether the holder wakes one of those that wait for the lock as soon as it gives it back."""
    held = next((held for held in threads[holder].holds if held.lock == lock.id), None)
    if held is None or held.shared or lock.foreign_releases or lock.kind not in _WAKING:
        return False
    waits = [threads[tid].waiting_for for tid in lock.waiters if tid in threads]
    return all(wait is not None and not wait.pshared for wait in waits)


def _which(lock: Lock, threads: Mapping[int, Thread]) -> int:
    """Of several readers the one that has had it longest and does not wait itself, if there is one:
    it is the one that the others wait for."""

    def rank(tid: int) -> tuple[bool, float]:
        thread = threads.get(tid)
        if thread is None:
            return True, 0.0
        held = next((held.duration_s for held in thread.holds if held.lock == lock.id), None)
        return thread.waiting_for is not None, -(held or 0.0)

    return min(lock.holders, key=rank)
