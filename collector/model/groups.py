"""Groups: locks of one name as one class, threads that do the same as one group."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property

from msgspec import Struct

from locktop.collector.model.kinds import Kind, ThreadState
from locktop.collector.model.locks import LockRates
from locktop.collector.model.threads import Thread, TimeSplit, Wait


class LockClass(Struct, frozen=True, gc=False):
    """At least two locks of one kind and one name. Figures are sums, named as in Lock."""

    name: str  # indexes left empty: shards[].mu
    kind: Kind
    locks: tuple[int, ...]  # ids, in the order of Snapshot.locks: the most wait first
    destroyed: int  # how many of ``locks`` are destroyed
    acquisitions: int
    contended: int
    trylock_failed: int
    signals: int
    unheard: int
    wait_s: float
    wait_max_s: float  # the longest wait for any of them
    hold_s: float
    hold_timed: int
    hold_max_s: float
    holders: tuple[int, ...]  # tids, each once
    waiters: tuple[int, ...]  # tids, those at the first lock first
    rates: LockRates
    idle: bool  # True: every lock of the class is idle
    idle_s: float

    @property
    def counted_wait_s(self) -> float:
        """The seconds that count: waits in contention, or without any the waits for work."""
        return self.wait_s if self.idle else self.wait_s - self.idle_s


class ThreadGroup(Struct, frozen=True, dict=True):  # dict: for the cached properties
    """One or more threads that do the same."""

    key: Hashable  # the same from one scan to the next
    #: Blocked threads come first, of these the longest wait, then by tid.
    threads: tuple[Thread, ...]
    name: str  # for all of them: pool-1-thread-#
    lock: int  # id, 0 where the threads wait for several locks or for no known lock
    lock_name: str  # of the lock, or of the one class of all their locks; "" without one

    @property
    def first(self) -> Thread:
        """The thread that waits longest."""
        return self.threads[0]

    @property
    def state(self) -> ThreadState:
        """The state of every thread; of restless threads the state of the first."""
        return self.first.state

    @cached_property
    def states(self) -> frozenset[ThreadState]:
        """The states of all threads: several only where the threads are restless."""
        return frozenset(thread.state for thread in self.threads)

    @cached_property
    def holds(self) -> int:
        """The number of locks that the threads hold together."""
        return sum(len(thread.holds) for thread in self.threads)

    @cached_property
    def time(self) -> TimeSplit | None:
        """The mean of where the time of the threads went, None where that is not known."""
        return TimeSplit.mean([one.time for one in self.threads if one.time is not None])

    @property
    def wait(self) -> Wait | None:
        """The longest wait."""
        return self.first.waiting_for

    @cached_property
    def tids(self) -> tuple[int, ...]:
        """The ids of the threads."""
        return tuple(thread.tid for thread in self.threads)

    @property
    def kind(self) -> Kind | None:
        """The kind of lock that the threads wait for."""
        return self.wait.kind if self.wait is not None else None

    @cached_property
    def locks(self) -> tuple[int, ...]:
        """The ids of the locks that the threads wait for, in the order of the threads."""
        waits = (thread.waiting_for for thread in self.threads)
        return tuple(dict.fromkeys(wait.lock for wait in waits if wait is not None))

    @cached_property
    def holders(self) -> tuple[int, ...]:
        """The tids that hold what the threads wait for, each once."""
        waits = (thread.waiting_for for thread in self.threads)
        return tuple(dict.fromkeys(tid for wait in waits if wait for tid in wait.holders))
