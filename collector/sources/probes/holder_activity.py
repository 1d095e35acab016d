"""The activity of the threads that hold contended locks."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from locktop.collector.analysis import longest_calls
from locktop.collector.linux import syscalls
from locktop.collector.linux.threads import KernelThreads
from locktop.collector.model import (
    ActivityState,
    Draft,
    Frame,
    Lock,
    Thread,
    ThreadActivity,
)
from locktop.collector.model.kinds import WAKES_AT_RELEASE_KINDS
from locktop.collector.sources.probes.native_stacks import NativeStacks
from locktop.collector.sources.probes.python_stacks import PythonStacks
from locktop.collector.sources.probes.thread_activity import ThreadActivityProbe

#: Locks of one scan whose holders are queried: locks in a deadlock, then those with most waiters.
_MAX_QUERIED = 32
#: Waiters of a lock that are queried for their call.
_MAX_CALLS = 3
#: The begin of a note, with the reason after a colon.
RUNNING_UNKNOWN = "the stacks of running threads are not known"

#: Given threads and locks that they held, reads the ids of the locks that they still hold.
StillHolds = Callable[[Collection[tuple[int, Lock]]], Collection[int]]


class _LastSleep(NamedTuple):
    """Where a thread was last seen asleep."""

    began: int  # start time of the thread, because ids are reused
    stack: int
    read_at: float  # time.monotonic()


class HolderProbe:
    """Queries the kernel about the holders in each scan."""

    def __init__(
        self,
        pid: int,
        tasks: KernelThreads,
        stacks: NativeStacks,
        python: PythonStacks,
        holds: StillHolds,
    ) -> None:
        self._probe = ThreadActivityProbe(pid, tasks)
        self._python = python
        #: Ids of the threads that the last scan found blocked in Python code.
        self.in_python: frozenset[int] = frozenset()
        self._tasks = tasks
        self._stacks = stacks
        self._holds = holds
        self._stack_ids: set[int] = set()  # stacks
        self._last_sleeps: dict[int, _LastSleep] = {}  # by tid
        self._followed_locks: frozenset[int] | None = None

    def follow(self, locks: Collection[int] | None) -> None:
        """Read the stacks of the holders of these locks alone, by id; None: of all."""
        self._followed_locks = None if locks is None else frozenset(locks)

    def annotate(self, snapshot: Draft, include_all: bool) -> None:
        """Fill in the activity of the holders of contended locks.

        Nothing changes if locktop lacks descriptors, or if the process is gone.

        Args:
            snapshot: the draft.
            include_all: read the stack of every holder, not only of holders of followed locks.
        """
        try:
            snapshot.locks = self._annotated_locks(snapshot, include_all)
        except OSError:
            self._stack_ids = set()
        snapshot.threads = longest_calls.apply(snapshot.threads, snapshot.locks)

    def _annotated_locks(self, snapshot: Draft, include_all: bool) -> tuple[Lock, ...]:
        self.in_python = frozenset()
        locks, first = snapshot.locks, snapshot.deadlocked
        contended = [lock for lock in locks if lock.waiters and _holders(lock) and not lock.idle]
        contended.sort(key=lambda lock: (lock.id not in first, -len(lock.waiters)))
        contended = contended[:_MAX_QUERIED]
        by_tid = {thread.tid: thread for thread in snapshot.threads if not thread.pid}
        self._stack_ids = set()
        chosen = {lock.id: _holder_to_query(lock, by_tid) for lock in contended}
        activities = self._probe.query({tid: by_tid.get(tid) for tid in chosen.values()})
        # A holder in a system call may have released the lock since the scan. But the holder still
        # has the lock if it was in the same sleep at the last scan. The same is true if the holder
        # has the lock now and has slept since.
        having = self._holds([
            (now.tid, lock)
            for lock in contended
            if (now := activities[chosen[lock.id]]).doing is ActivityState.BLOCKED
            and not now.duration_s
        ])  # fmt: skip
        # A probable holder was asleep when its code was followed; it still is, as checked below.
        having = {*having, *(lock.id for lock in contended if not lock.holders)}
        held: dict[int, Lock] = {}  # by tid: a lock for which the holder is queried
        holder_of_lock: dict[int, int] = {}  # by lock: tid
        for lock in contended:
            tid = chosen[lock.id]
            if activities[tid].doing is ActivityState.BLOCKED:
                if not activities[tid].duration_s and lock.id not in having:
                    continue
                activities[tid] = self._probe.describe(activities[tid])
                if not self._tasks.still_sleeps(tid):
                    continue
            holder_of_lock[lock.id] = tid
            if (
                include_all
                or self._followed_locks is None
                or lock.id in self._followed_locks
                or lock.id in first
            ):
                held.setdefault(tid, lock)
        if not holder_of_lock:
            return tuple(locks)
        sleeps = self._last_sleeps.items()
        self._last_sleeps = {tid: last for tid, last in sleeps if tid in activities}
        self._stacks.begin_again()  # the description of a socket may have taken long
        activities |= self._add_blocked_stacks(activities, held)
        activities |= self._add_running_stacks(activities, held, by_tid)
        activities |= self._add_python_stacks(activities)
        self._stack_ids = {now.stack for now in activities.values() if now.stack}
        return tuple(
            replace(lock, holder_activity=activities[holder_of_lock[lock.id]])
            if lock.id in holder_of_lock
            else lock
            for lock in locks
        )

    def _add_blocked_stacks(
        self, activities: Mapping[int, ThreadActivity], held: Mapping[int, Lock]
    ) -> dict[int, ThreadActivity]:
        blocked: dict[int, ThreadActivity] = {}
        for tid in held:
            now = activities[tid]
            if (
                now.doing is ActivityState.BLOCKED and self._probe.sleep(tid)[0].pc
            ):  # else locktop may not see the call
                kernel_tid, sleep = self._tasks.kernel_tid(tid), self._probe.sleep(tid)
                still_sleeps = partial(self._tasks.still_sleeps, tid)
                stack = self._stacks.stack_id(kernel_tid, sleep, asleep=(sleep[0], still_sleeps))
                # A stop puts the thread on a CPU.
                if stack and (self._stacks.was_stopped(kernel_tid) or still_sleeps()):
                    blocked[tid] = replace(now, stack=stack)
                    self._last_sleeps[tid] = _LastSleep(
                        began=self._began(tid), stack=stack, read_at=time.monotonic()
                    )
        return blocked

    def _add_python_stacks(
        self, activities: Mapping[int, ThreadActivity]
    ) -> dict[int, ThreadActivity]:
        """Return the activities whose Python functions are known."""
        blocked = {
            tid: now
            for tid, now in activities.items()
            if now.doing is ActivityState.BLOCKED
            and now.stack
            and self._python.runs_in({now.stack: self._stacks.frames(now.stack)})
        }
        self.in_python = frozenset(blocked)
        return {
            tid: replace(now, stack=stack)
            for tid, now in blocked.items()
            if (stack := self._python.sleep_stack(tid, self._probe.sleep_key(tid)))
        }

    def _add_running_stacks(
        self,
        activities: Mapping[int, ThreadActivity],
        held: Mapping[int, Lock],
        threads: Mapping[int, Thread],
    ) -> dict[int, ThreadActivity]:
        """Return the activities of running holders, with stacks.

        A running thread may have released the lock since the scan, and be anywhere. But the thread
        still holds the lock if all waiters slept all the while and it holds the lock afterwards.
        The release of a lock with waiters wakes one of them.
        """
        asleep = {
            tid: self._asleep(lock) if _wakes(lock, tid, threads) else None
            for tid, lock in held.items()
            if activities[tid].doing is ActivityState.RUNNING
        }
        kernel_tids = {tid: self._tasks.kernel_tid(tid) for tid in asleep}
        stacks = self._stacks.running(
            [kernel_tids[tid] for tid, is_asleep in asleep.items() if is_asleep]
        )
        running: dict[int, ThreadActivity] = {}
        for tid, kernel_tid in kernel_tids.items():
            lock, now = held[tid], activities[tid]
            stack = stacks.get(kernel_tid, 0)
            if stack and self._asleep(lock) == asleep[tid] and self._holds([(tid, lock)]):
                running[tid] = replace(now, stack=stack)
            elif (last := self._last_sleeps.get(tid)) is not None and (
                last.began == self._began(tid)
            ):
                age_s = time.monotonic() - last.read_at
                running[tid] = replace(now, stack=last.stack, stack_age_s=age_s)
        return running

    def _began(self, tid: int) -> int:
        try:
            return self._tasks.start_time(tid)
        except (OSError, ValueError):
            return -1

    def _asleep(self, lock: Lock) -> dict[int, int] | None:
        """Return how often the kernel had put each waiter on a CPU before its sleep.

        Returns:
            None if a waiter is awake, or if none sleeps in a call that a release wakes (as in a
                signal handler).
        """
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
        """Return the stacks of the last queried holders, as far as they are named."""
        return {stack: self._python.holder_frames(stack) for stack in self._stack_ids}

    def notes(self) -> Iterable[str]:
        """Yield what cannot be known of holders, and why."""
        if self._stacks.refused:
            yield f"{RUNNING_UNKNOWN}: {self._stacks.refused}"


def _wakes(lock: Lock, holder: int, threads: Mapping[int, Thread]) -> bool:
    """Return whether the holder's release wakes one of the waiters at once."""
    held = next((held for held in threads[holder].holds if held.lock == lock.id), None)
    if (
        held is None
        or held.shared
        or lock.foreign_releases
        or lock.kind not in WAKES_AT_RELEASE_KINDS
    ):
        return False
    waits = [threads[tid].waiting_for for tid in lock.waiters if tid in threads]
    return all(wait is not None and not wait.pshared for wait in waits)


def _holder_to_query(lock: Lock, threads: Mapping[int, Thread]) -> int:
    """Return the holder to query: of several readers the one with the longest hold and no wait.

    The others wait for that one.
    """

    def rank(tid: int) -> tuple[bool, float]:
        thread = threads.get(tid)
        if thread is None:
            return True, 0.0
        held = next((held.duration_s for held in thread.holds if held.lock == lock.id), None)
        return thread.waiting_for is not None, -(held or 0.0)

    return min(_holders(lock), key=rank)


def _holders(lock: Lock) -> tuple[int, ...]:
    """Return the holders of a lock, else the threads that probably hold it."""
    return lock.holders or tuple(holder.tid for holder in lock.holders_probable)
