"""A snapshot with indexes and names, computed once for each snapshot and only when needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec.structs import replace

from locktop.collector.analysis import (
    blocking_tree,
    deadlock_report,
    divided_waits,
    lock_classes,
    semaphore_ownership,
    thread_groups,
    waiter_peers,
)
from locktop.collector.model import (
    Blame,
    BlockingTree,
    Deadlock,
    DeadlockReport,
    Frame,
    Held,
    Kind,
    Lock,
    LockClass,
    PatternName,
    Snapshot,
    TakenUnits,
    Thread,
    ThreadActivity,
    ThreadGroup,
    ThreadState,
    WaitPart,
    WaitStack,
)
from locktop.collector.model.frames import innermost_own_frame
from locktop.collector.render.words import (
    elsewhere,
    hang,
    likely_holder,
    named_holder,
    probable_holder,
    python_shares,
    readers,
)
from locktop.collector.render.words.foreign_code import innermost_program_frame
from locktop.collector.render.words.named_holder import Certainty, EarlierHolder, NamedHolder
from locktop.collector.render.words.source_location import short_location

#: Characters kept of a name that several threads have: the tid follows.
_SHARED_NAME = 8
#: A wait of at least this many seconds is long.
LONG_WAIT_S = 1.0
#: A thread with this share of waits in the last interval counts as one in contention.
SOME_SHARE = 0.05
_MAX_OF_THE_TIME = 0.9
#: Fewer threads get rows of their own: of threads that do the same, of restless threads.
_MIN_OF_A_GROUP = (3, 8)


class SnapshotIndex:
    """One snapshot with indexes. Like the snapshot, the index never changes."""

    def __init__(
        self,
        snapshot: Snapshot,
        source_line: Callable[[str | None, int | None], str] = lambda *_: "",
    ) -> None:
        """Args:
        snapshot: the snapshot.
        source_line: returns a line of a source file by its number; "" where it is not known.
        """
        self.snapshot = snapshot
        self.source_line = source_line
        self.threads: dict[int, Thread] = {thread.tid: thread for thread in snapshot.threads}
        self.locks: dict[int, Lock] = {lock.id: _name_join(lock) for lock in snapshot.locks}
        self.threads_elsewhere = {thread.tid: thread for thread in snapshot.threads_elsewhere}
        #: The holders of the last scans, see earlier_holder.recall().
        self.earlier_holders: Mapping[int | str, EarlierHolder] = {}
        self._named_holders: dict[int, NamedHolder | None] = {}  # by lock
        self.unobserved_waits = {wait.tid: wait for wait in snapshot.unobserved_waits}

    @cached_property
    def classes(self) -> dict[Hashable, LockClass]:
        """The classes of locks, by kind and name."""
        return {
            (lock_class.kind, lock_class.name): lock_class
            for lock_class in lock_classes.find(tuple(self.locks.values()))
        }

    @cached_property
    def class_of(self) -> dict[int, LockClass]:
        """The class of each lock that is in one, by the lock's id."""
        return lock_classes.classes_by_lock(self.classes.values())

    @cached_property
    def groups(self) -> dict[Hashable, ThreadGroup]:
        """The groups of threads by key. A thread in a deadlock is in no group."""
        restless = {thread.tid for thread in self.snapshot.threads if _is_restless(thread)}
        all_groups = thread_groups.find(
            self.snapshot.threads, self.locks, self.class_of, self.stuck_threads, restless
        )
        return {
            group.key: group
            for group in all_groups
            if len(group.threads) >= _MIN_OF_A_GROUP[group.first.tid in restless]
        }

    @cached_property
    def group_of(self) -> dict[int, ThreadGroup]:
        """The group of each thread that is in one, by tid."""
        return {tid: group for group in self.groups.values() for tid in group.tids}

    @cached_property
    def awaited_holders(self) -> frozenset[int]:
        """The tids of the threads that probably hold a lock which others wait for."""
        return probable_holder.awaited_tids(self.snapshot.locks)

    @cached_property
    def _idle_threads(self) -> frozenset[int]:
        idle = (t.tid for t in self.snapshot.threads if only_waits_for_work(t))
        return frozenset(idle) - self.awaited_holders

    @cached_property
    def _idle_groups(self) -> frozenset[Hashable]:
        return frozenset(
            key for key, group in self.groups.items() if self._idle_threads.issuperset(group.tids)
        )

    def is_idle(self, row: Thread | ThreadGroup) -> bool:
        """Whether a thread, or every thread of a group, only waits for work."""
        if isinstance(row, ThreadGroup):
            return row.key in self._idle_groups
        return row.tid in self._idle_threads

    @cached_property
    def deadlocks(self) -> tuple[Deadlock, ...]:
        """The deadlocks to show: none where the hang of the whole process says more."""
        return () if hang.is_the_finding(self.snapshot) else self.snapshot.deadlocks

    @cached_property
    def unsignalled(self) -> frozenset[int]:
        """The ids of the conditions that no signal has reached; none while threads wait for locks.

        A pool without work looks the same, so locks that threads wait for matter more.
        """
        if self.waiting:
            return frozenset()
        patterns = self.snapshot.patterns
        return frozenset(p.lock for p in patterns if p.name is PatternName.NO_SIGNAL)

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
        """The threads that wait in contention, the longest wait first."""
        waiting = [t for t in self.snapshot.threads if is_stuck_waiting(t)]
        return tuple(sorted(waiting, key=_waited_s, reverse=True))

    def waiters_of(self, lock_id: int) -> list[Thread]:
        """The threads that wait in contention for a lock, the longest wait first."""
        waiters = [
            thread
            for thread in self.snapshot.threads
            if (wait := thread.waiting_for) is not None
            and wait.lock == lock_id
            and thread.state is ThreadState.WAITING
        ]
        return sorted(waiters, key=_waited_s, reverse=True)

    @cached_property
    def taken_units(self) -> dict[int, TakenUnits]:
        """By semaphore whose units are all taken: the threads that took them."""
        return {
            lock.id: lock.taken_units
            for lock in self.snapshot.locks
            if lock.taken_units is not None
        }

    def semaphores_without_units(self, deadlocks: Sequence[Deadlock]) -> tuple[Lock, ...]:
        """The semaphores of these deadlocks, if the units of each are all taken."""
        return semaphore_ownership.semaphores_without_units(self.snapshot, deadlocks)

    @cached_property
    def blocking(self) -> BlockingTree:
        """The present waits in contention, below the threads and locks that cause them."""
        return blocking_tree.find(self.snapshot)

    @cached_property
    def behind_waiters(self) -> dict[int, int]:
        """By lock: the threads that wait behind its waiters, if there are any."""
        behind: dict[int, int] = {}
        if all(root.depth == 1 for root in self.blocking.roots):
            return behind
        for waiter in self.blocking.waiters.values():
            if waiter.behind.threads:
                behind[waiter.lock] = behind.get(waiter.lock, 0) + waiter.behind.threads
        return behind

    @cached_property
    def chained_wait_s(self) -> dict[int, float]:
        """By lock at the root of a chain: the seconds of waits for the other locks of its chain.

        Short waits come and go between two scans, so they make no chain.
        """
        chained: dict[int, float] = {}
        for root in self.blocking.roots:
            if root.depth > 1 and root.behind.waited_s >= LONG_WAIT_S:
                others = {node.lock for node in self.blocking.walk(root)} - {root.lock}
                waits = [self.locks[id_].counted_wait_s for id_ in others if id_ in self.locks]
                chained[root.lock] = chained.get(root.lock, 0.0) + sum(waits)
        return chained

    @cached_property
    def _same_names(self) -> Counter[str]:
        return Counter([thread.name for thread in self.snapshot.threads])

    @property
    def dormant(self) -> bool:
        """Whether the library is dormant: then a count of 0 means "not measured"."""
        return self.snapshot.level == "dormant" and not self.snapshot.ended

    def waited(self, text: str) -> str:
        """``text`` about waits since the last scan; "-" if they are not measured."""
        return "-" if self.dormant else self.lately(text)

    def lately(self, text: str) -> str:
        """``text`` about the time since the last scan; "-" in the first scan."""
        return text if self.snapshot.interval_s else "-"

    def thread_name(self, tid: int) -> str:
        """The name of a thread, which no other thread has."""
        thread = self.threads.get(tid)
        if thread is None:
            other = self.threads_elsewhere.get(tid)
            return elsewhere.short_name(other) if other is not None else str(tid)
        if thread.name and self._same_names[thread.name] == 1:
            return thread.name
        return f"{thread.name[:_SHARED_NAME]}:{tid}".lstrip(":")

    def lock_name(self, lock_id: int) -> str:
        """The name of a lock, with its address where its class has one name for all."""
        lock = self.locks.get(lock_id)
        if lock is None:
            return f"lock {lock_id}"
        return lock_classes.single_name(lock, self.class_of.get(lock_id))

    def lock_kind(self, lock_id: int) -> Kind | None:
        """The kind of a lock; None for a lock that the snapshot lacks."""
        lock = self.locks.get(lock_id)
        return lock.kind if lock is not None else None

    def name_in_class(self, lock: Lock, lock_class: LockClass) -> str:
        """The part of a lock's name that no other lock of its class has."""
        return lock_classes.name_in_class(lock, lock_class)

    def class_blame(self, lock_class: LockClass) -> Sequence[Blame]:
        """The wait time of a class by holder, the longest first."""
        return lock_classes.blame(self.members(lock_class))

    def class_wait_stacks(self, lock_class: LockClass) -> tuple[WaitStack, ...]:
        """Where the waits for a class came from, the longest first."""
        return lock_classes.wait_stacks(self.members(lock_class))

    def wait_parts(self, waited: WaitStack) -> tuple[WaitPart, ...]:
        """The parts of the waits from one native stack, by their Python functions."""
        return divided_waits.parts(waited)

    def note_on_parts(self, waited: WaitStack) -> str:
        """The basis of divided waits."""
        return python_shares.note(divided_waits.read_waits(waited))

    @cached_property
    def deadlock_reports(self) -> tuple[DeadlockReport, ...]:
        """A report for each of ``deadlocks``, in their order."""
        return deadlock_report.reports(self.snapshot) if self.deadlocks else ()

    def members(self, lock_class: LockClass) -> list[Lock]:
        """The locks of a class."""
        return [self.locks[lock_id] for lock_id in lock_class.locks]

    def holders(self, tids: tuple[int, ...], lock_id: int) -> str:
        """The name of the first of ``tids``, who hold the lock, and the number of the others.

        A question mark follows if other threads release the lock too: the holders may be wrong.
        """
        if not tids:
            return ""
        more = f" +{len(tids) - 1}" if len(tids) > 1 else ""
        lock = self.locks.get(lock_id)
        doubt = "?" if lock is not None and lock.foreign_releases else ""
        return self.thread_name(tids[0]) + more + doubt

    def probable_holders(self, lock: Lock) -> str:
        """The same of the threads that probably hold a lock without a known holder."""
        return self.holders(probable_holder.tids(lock), lock.id)

    def holder_of(self, lock: Lock) -> NamedHolder | None:
        """The threads that are named as the holders of a lock; None without any."""
        if lock.id not in self._named_holders:
            waiters = [self.threads[tid] for tid in lock.waiters if tid in self.threads]
            waits = [thread.waiting_for for thread in waiters if thread.waiting_for is not None]
            noted = waits[0].holders if waits else ()
            likely = peer = None
            # A large program has many locks without waiters.
            if waits and not (lock.holders or noted):
                likely = likely_holder.find(self.snapshot, lock, self._only_awake)
                peer = waiter_peers.find(self.snapshot.stacks, waits, self._only_peers)
            self._named_holders[lock.id] = named_holder.name(lock, noted, likely, peer)
        return self._named_holders[lock.id]

    def holder_in_column(self, lock: Lock) -> str:
        """The holder of a lock in a few characters: "~writer +2", "2 readers"; "" without one."""
        named, held = self.holder_of(lock), readers.phrase(lock)
        if held and (named is None or named.certainty is not Certainty.PROBABLE):
            return held
        return f"{named.mark}{self.holders(named.tids, lock.id)}" if named is not None else ""

    @cached_property
    def _only_awake(self) -> Thread | None:
        return likely_holder.find_only_awake(self.snapshot)

    @cached_property
    def _only_peers(self) -> waiter_peers.Peers:
        may_be_others = likely_holder.others_may_hold(self.snapshot)
        return {} if may_be_others else waiter_peers.only_peers(self.snapshot)

    def held(self, tid: int, lock_id: int) -> Held | None:
        """How the thread holds the lock, None where that is not known."""
        thread = self.threads.get(tid)
        if thread is None:
            return None
        return next((held for held in thread.holds if held.lock == lock_id), None)

    def site(self, address: int) -> str:
        """The source location of a return address, "" for address 0."""
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
        """The source location of the innermost frame that is no lock function."""
        frame = self.top_frame(stack_id)
        return short_location(frame) if frame is not None else ""

    def top_frame(self, stack_id: int) -> Frame | None:
        """The innermost frame of a stack that is no lock function."""
        frames = self.stack(stack_id)
        return innermost_own_frame(frames) or (frames[0] if frames else None)

    def activity_frame(self, now: ThreadActivity | None) -> Frame | None:
        """The innermost frame of the program's own code in the present stack of a thread."""
        if now is None or now.stack_age_s:
            return None
        return innermost_program_frame(self.stack(now.stack))

    def wait_frame(self, thread: Thread) -> Frame | None:
        """Where in the code a thread waits, None without a wait or where that is not known."""
        wait = thread.waiting_for
        if wait is None:
            return None
        return self.top_frame(wait.stack) or self.snapshot.sites.get(wait.site)

    def chain(self, tid: int) -> Iterator[Thread]:
        """The thread, its holder, the holder's holder, and so on, to a cycle or an end."""
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


def _name_join(lock: Lock) -> Lock:
    """The lock, with another name for a join without a known thread: it has no address."""
    if lock.kind is Kind.JOIN and not lock.address:
        return replace(lock, name="thread join")
    return lock


def only_waits_for_work(thread: Thread) -> bool:
    """Whether a thread only waits for work, now and in the last interval.

    A thread that sleeps with a lock, or that waited for locks lately, does not.
    """
    if not thread.alive:  # the waits of a killed process stay visible
        return thread.state is not ThreadState.WAITING
    if thread.idle_share >= _MAX_OF_THE_TIME and _is_restless(thread):
        # Without this a moment of work would make the row come and go.
        return thread.waiting_for is None or not thread.holds
    return thread.state is ThreadState.IDLE and not thread.holds and thread.wait_share < SOME_SHARE


def _is_restless(thread: Thread) -> bool:
    """Whether a thread may do something else in the next scan, which would make rows jump."""
    wait = thread.waiting_for
    if not thread.alive or (wait is not None and wait.duration_s >= LONG_WAIT_S):
        return False
    holds = thread.holds  # any() of no holds takes longer than all else here
    return not holds or not any(
        held.duration_s and held.duration_s >= LONG_WAIT_S for held in holds
    )


def is_stuck_waiting(thread: Thread) -> bool:
    """Whether the thread waits in contention."""
    return thread.waiting_for is not None and thread.state is ThreadState.WAITING


def is_contention(lock: Lock | LockClass) -> bool:
    """Whether waiting for this lock is contention, not waiting for work."""
    return not lock.idle


def _waited_s(thread: Thread) -> float:
    return thread.waiting_for.duration_s if thread.waiting_for is not None else 0.0
