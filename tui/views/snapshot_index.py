"""A snapshot with indexes: what the panels ask again and again, worked out once for each look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from functools import cached_property

from msgspec.structs import replace

from locktop.collector.analysis import lock_classes, thread_groups
from locktop.collector.analysis.lock_classes import LockClass
from locktop.collector.analysis.thread_groups import ThreadGroup
from locktop.collector.format.source_location import short_location
from locktop.collector.model import Frame, Held, Kind, Lock, Snapshot, Thread, ThreadState
from locktop.collector.model.frames import whose

#: Characters kept of a name that several threads have, so that the tid after it has room.
_SHARED_NAME = 8
#: A wait this long is a matter of its own; a shorter one is one of many.
LONG_WAIT_S = 1.0
#: Of the last interval: from here on a thread counts as one that contends.
SOME_SHARE = 0.05
_MAX_OF_THE_TIME = 0.9
#: Fewer are clearer as rows of their own: of threads that do the same, of those of one pool that
#: come and go.
_MIN_OF_A_GROUP = (3, 8)


class SnapshotIndex:
    """One snapshot, indexed. Like the snapshot it never changes."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.threads: dict[int, Thread] = {thread.tid: thread for thread in snapshot.threads}
        self.locks: dict[int, Lock] = {lock.id: _named(lock) for lock in snapshot.locks}
        self.unobserved_waits = {wait.tid: wait for wait in snapshot.unobserved_waits}

    @cached_property
    def classes(self) -> dict[Hashable, LockClass]:
        """The classes of locks, by kind and name."""
        return {
            (found.kind, found.name): found
            for found in lock_classes.find(tuple(self.locks.values()))
        }

    @cached_property
    def class_of(self) -> dict[int, LockClass]:
        """The class of each lock that is in one, by the lock's id."""
        return lock_classes.by_lock(self.classes.values())

    @cached_property
    def groups(self) -> dict[Hashable, ThreadGroup]:
        """The groups of threads that have one row, by their keys. Who is stuck is in none."""
        restless = {thread.tid for thread in self.snapshot.threads if _is_restless(thread)}
        folded = thread_groups.find(
            self.snapshot.threads, self.locks, self.class_of, self.stuck_threads, restless
        )
        return {
            group.key: group
            for group in folded
            if len(group.threads) >= _MIN_OF_A_GROUP[group.first.tid in restless]
        }

    @cached_property
    def group_of(self) -> dict[int, ThreadGroup]:
        """The group of each thread that is in one, by tid."""
        return {tid: group for group in self.groups.values() for tid in group.tids}

    @cached_property
    def _idle_threads(self) -> frozenset[int]:
        return frozenset(t.tid for t in self.snapshot.threads if only_waits_for_work(t))

    @cached_property
    def _idle_groups(self) -> frozenset[Hashable]:
        idle = self._idle_threads
        return frozenset(key for key, group in self.groups.items() if idle.issuperset(group.tids))

    def is_idle(self, row: Thread | ThreadGroup) -> bool:
        """Whether a thread only waits for work; of a group whether all do."""
        if isinstance(row, ThreadGroup):
            return row.key in self._idle_groups
        return row.tid in self._idle_threads

    @cached_property
    def stuck_threads(self) -> frozenset[int]:
        """The tids in a deadlock."""
        return frozenset(
            edge.tid for deadlock in self.snapshot.deadlocks for edge in deadlock.cycle
        )

    @cached_property
    def stuck_locks(self) -> frozenset[int]:
        """The ids of the locks in a deadlock."""
        return self.snapshot.deadlocked

    @cached_property
    def waiting(self) -> tuple[Thread, ...]:
        """Threads that wait for a lock which somebody holds, the longest wait first."""
        waiting = [t for t in self.snapshot.threads if is_stuck_waiting(t)]
        return tuple(sorted(waiting, key=lambda t: -_waited(t)))

    @cached_property
    def _same_names(self) -> Counter[str]:
        return Counter([thread.name for thread in self.snapshot.threads])

    @property
    def dormant(self) -> bool:
        """Whether nothing is counted now: nought is not known to be nought."""
        return self.snapshot.level == "dormant" and not self.snapshot.ended

    def counted(self, text: str) -> str:
        """``text``, which is about what was counted since the look before; "-" if nothing was."""
        return "-" if self.snapshot.is_sampled else self.waited(text)

    def waited(self, text: str) -> str:
        """``text``, which is about waits since the look before; "-" if they are not known."""
        return "-" if self.dormant else self.lately(text)

    def lately(self, text: str) -> str:
        """``text``, which is about the time since the look before; "-" at the first look."""
        return text if self.snapshot.interval_s else "-"

    def thread_name(self, tid: int) -> str:
        """What to call the thread ``tid``, so that it is told from every other one."""
        thread = self.threads.get(tid)
        if thread is None:
            return str(tid)
        if thread.name and self._same_names[thread.name] == 1:
            return thread.name
        return f"{thread.name[:_SHARED_NAME]}:{tid}".lstrip(":")

    def lock_name(self, lock_id: int) -> str:
        """What to call the lock ``lock_id``, so that it is told from those of its class."""
        lock = self.locks.get(lock_id)
        if lock is None:
            return f"lock {lock_id}"
        return lock_classes.single_name(lock, self.class_of.get(lock_id))

    def members(self, of: LockClass) -> list[Lock]:
        """The locks of a class."""
        return [self.locks[lock_id] for lock_id in of.locks]

    def holders(self, tids: tuple[int, ...], lock_id: int) -> str:
        """The first of ``tids``, who hold the lock, by name and how many more there are.

        With a question mark where other threads give it back too: then they may not hold it.
        """
        if not tids:
            return ""
        more = f" +{len(tids) - 1}" if len(tids) > 1 else ""
        lock = self.locks.get(lock_id)
        doubt = "?" if lock is not None and lock.foreign_releases else ""
        return self.thread_name(tids[0]) + more + doubt

    def held(self, tid: int, lock_id: int) -> Held | None:
        """How the thread holds the lock, None if it is not known to."""
        thread = self.threads.get(tid)
        if thread is None:
            return None
        return next((held for held in thread.holds if held.lock == lock_id), None)

    def site(self, address: int) -> str:
        """The place at one return address, "" if that is not known."""
        if not address:
            return ""
        frame = self.snapshot.sites.get(address)
        return short_location(frame) if frame is not None else f"{address:#x}"

    def held_site(self, tid: int, lock_id: int) -> str:
        """Where the thread took the lock, "" if that is not known."""
        held = self.held(tid, lock_id)
        return self.site(held.site) if held is not None else ""

    def stack(self, stack_id: int) -> tuple[Frame, ...]:
        """The frames of a stack, innermost first."""
        return self.snapshot.stacks.get(stack_id, ())

    def stack_top(self, stack_id: int) -> str:
        """The innermost place of a stack that is not the lock function itself."""
        frame = self.top_frame(stack_id)
        return short_location(frame) if frame is not None else ""

    def top_frame(self, stack_id: int) -> Frame | None:
        """The innermost frame of a stack that is not the lock function itself."""
        frames = self.stack(stack_id)
        return whose(frames) or (frames[0] if frames else None)

    def wait_frame(self, thread: Thread) -> Frame | None:
        """Where in the code a thread waits, None if it does not or that is not known."""
        wait = thread.waiting_for
        if wait is None:
            return None
        return self.top_frame(wait.stack) or self.snapshot.sites.get(wait.site)

    def chain(self, tid: int) -> Iterator[Thread]:
        """The thread, the one it waits for, the one that waits for …: to a circle or an end."""
        seen: set[int] = set()
        while tid not in seen:
            seen.add(tid)
            thread = self.threads.get(tid)
            if thread is None:
                return
            yield thread
            if thread.waiting_for is None or not thread.waiting_for.holders:
                return
            tid = thread.waiting_for.holders[0]


def _named(lock: Lock) -> Lock:
    """A join whose thread is not known has no address to be called by."""
    if lock.kind is Kind.JOIN and not lock.address:
        return replace(lock, name="thread join")
    return lock


def only_waits_for_work(thread: Thread) -> bool:
    """Whether a thread does nothing else, lately and now.

    One that sleeps while it holds a lock does, and so does one that lately waited for locks.
    """
    if not thread.alive:  # but what a killed process was stuck on stays to be seen
        return thread.state is not ThreadState.WAITING
    if thread.idle_share >= _MAX_OF_THE_TIME and _is_restless(thread):
        # A moment's work is no reason for a row to come and go.
        return thread.waiting_for is None or not thread.holds
    return thread.state is ThreadState.IDLE and not thread.holds and thread.wait_share < SOME_SHARE


def _is_restless(thread: Thread) -> bool:
    """Whether it may do something else at the next look: rows that followed that would jump."""
    return (
        thread.alive
        and _waited(thread) < LONG_WAIT_S
        and not any(held.duration_s and held.duration_s >= LONG_WAIT_S for held in thread.holds)
    )


def is_stuck_waiting(thread: Thread) -> bool:
    """Whether the thread waits for something that another one holds."""
    return thread.waiting_for is not None and thread.state is ThreadState.WAITING


def is_contention(lock: Lock | LockClass) -> bool:
    """Whether waiting for this lock is contention, not waiting for work."""
    return not lock.idle


def _waited(thread: Thread) -> float:
    return thread.waiting_for.duration_s if thread.waiting_for is not None else 0.0
