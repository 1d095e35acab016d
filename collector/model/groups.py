"""Groups: locks of one name as one class, threads that do the same as one group."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from locktop.collector.model.figures import longest, total
from locktop.collector.model.histograms import Histogram, merge, percentile_s
from locktop.collector.model.kinds import Kind, ThreadState
from locktop.collector.model.lock_figures import LOCK_FIGURES, LockFigures
from locktop.collector.model.locks import Lock, LockRates
from locktop.collector.model.threads import Thread, TimeSplit, Wait

if TYPE_CHECKING:

    class _LazySums(LockFigures, kw_only=True, frozen=True):
        wait_s: float = 0.0

else:

    class _LazySums(Struct, frozen=True, dict=True):  # dict: for the sums
        """Figures that are sums over ``members``. Many scans need none, so each is made late."""

        def __getattr__(self, name: str) -> object:
            if name not in LOCK_FIGURES:
                raise AttributeError(name)
            figure = total(getattr(member, name) for member in self.members)
            self.__dict__[name] = figure
            return figure


class LockClass(_LazySums, frozen=True, dict=True):
    """At least two locks of one kind and one name. Figures are sums, named as in Lock.

    A sum is None if the figure of a lock was not measured.
    """

    name: str  # indexes left empty: shards[].mu
    kind: Kind
    locks: tuple[int, ...]  # ids, in the order of Snapshot.locks: the most wait first
    members: tuple[Lock, ...]  # the locks themselves, in the same order

    @cached_property
    def destroyed(self) -> int:
        """The number of ``locks`` that are destroyed."""
        return sum(lock.destroyed for lock in self.members)

    @cached_property
    def unheld_wait_s(self) -> float | None:
        """The seconds of blame that are charged to no known holder."""
        return total(lock.unheld_wait_s for lock in self.members)

    @cached_property
    def wait_max_s(self) -> float:
        """The longest wait for one of the locks."""
        return max(lock.wait_max_s for lock in self.members)

    @cached_property
    def wait_max_is_bound(self) -> bool:
        """Whether ``wait_max_s`` is an upper bound."""
        longest_s = self.wait_max_s
        return any(lock.wait_max_is_bound and lock.wait_max_s == longest_s for lock in self.members)

    @cached_property
    def wait_max_is_lower_bound(self) -> bool:
        """Whether ``wait_max_s`` is a lower bound."""
        return any(lock.wait_max_is_lower_bound for lock in self.members)

    @cached_property
    def hold_max_s(self) -> float | None:
        """The longest timed hold of one of the locks."""
        return longest(lock.hold_max_s for lock in self.members)

    @cached_property
    def wait_histogram(self) -> Histogram | None:
        """The waits for all locks by length."""
        return merge(lock.wait_histogram for lock in self.members)

    @cached_property
    def hold_histogram(self) -> Histogram | None:
        """The holds of all locks by length."""
        return merge(lock.hold_histogram for lock in self.members)

    @cached_property
    def wait_p50_s(self) -> float | None:
        """The length in seconds that half of the waits did not exceed."""
        return percentile_s(self.wait_histogram, 50, self.wait_max_s)

    @cached_property
    def wait_p99_s(self) -> float | None:
        """The length in seconds that 99 % of the waits did not exceed."""
        return percentile_s(self.wait_histogram, 99, self.wait_max_s)

    @cached_property
    def hold_p50_s(self) -> float | None:
        """The length in seconds that half of the holds did not exceed."""
        return percentile_s(self.hold_histogram, 50, self.hold_max_s)

    @cached_property
    def hold_p99_s(self) -> float | None:
        """The length in seconds that 99 % of the holds did not exceed."""
        return percentile_s(self.hold_histogram, 99, self.hold_max_s)

    @cached_property
    def holders(self) -> tuple[int, ...]:
        """The tids of the holders, each once."""
        return tuple(dict.fromkeys(tid for lock in self.members for tid in lock.holders))

    @cached_property
    def waiters(self) -> tuple[int, ...]:
        """The tids of the waiters, each once, those at the first lock first."""
        return tuple(dict.fromkeys(tid for lock in self.members for tid in lock.waiters))

    @cached_property
    def rates(self) -> LockRates:
        """The sums of the rates."""
        rates = [lock.rates for lock in self.members]
        return LockRates(
            acquisitions=total(figures.acquisitions for figures in rates),
            contended=total(figures.contended for figures in rates),
            wait=sum(figures.wait for figures in rates),
            hold=total(figures.hold for figures in rates),
            signals=total(figures.signals for figures in rates),
            unheld=total(figures.unheld for figures in rates),
        )

    @cached_property
    def idle(self) -> bool:
        """Whether every lock of the class is idle."""
        return all(lock.idle for lock in self.members)

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
        return frozenset([thread.state for thread in self.threads])

    @cached_property
    def holds(self) -> int:
        """The number of locks that the threads hold together."""
        return sum([len(thread.holds) for thread in self.threads])

    @cached_property
    def acquisitions(self) -> int | None:
        """The acquisitions of all threads, None if a thread's were not measured."""
        return total([thread.acquisitions for thread in self.threads])

    @cached_property
    def contended(self) -> int | None:
        """The contended acquisitions of all threads, None if a thread's were not measured."""
        return total([thread.contended for thread in self.threads])

    @cached_property
    def wait_histogram(self) -> Histogram | None:
        """The waits in contention of all threads by length."""
        return merge(thread.wait_histogram for thread in self.threads)

    @cached_property
    def wait_p50_s(self) -> float | None:
        """The length in seconds that half of the waits did not exceed."""
        return percentile_s(self.wait_histogram, 50, None)

    @cached_property
    def wait_p99_s(self) -> float | None:
        """The length in seconds that 99 % of the waits did not exceed."""
        return percentile_s(self.wait_histogram, 99, None)

    @cached_property
    def time(self) -> TimeSplit | None:
        """The mean of where the time of the threads went, None where that is not known."""
        return TimeSplit.mean([thread.time for thread in self.threads if thread.time is not None])

    @property
    def wait(self) -> Wait | None:
        """The longest wait."""
        return self.first.waiting_for

    @cached_property
    def tids(self) -> tuple[int, ...]:
        """The ids of the threads."""
        return tuple([thread.tid for thread in self.threads])

    @property
    def kind(self) -> Kind | None:
        """The kind of lock that the threads wait for."""
        return self.wait.kind if self.wait is not None else None

    @cached_property
    def locks(self) -> tuple[int, ...]:
        """The ids of the locks that the threads wait for, in the order of the threads."""
        waits = [thread.waiting_for for thread in self.threads]
        return tuple(dict.fromkeys([wait.lock for wait in waits if wait is not None]))

    @cached_property
    def holders(self) -> tuple[int, ...]:
        """The tids that hold what the threads wait for, each once."""
        waits = {wait.holders: None for t in self.threads if (wait := t.waiting_for) is not None}
        return tuple(dict.fromkeys(tid for holders in waits for tid in holders))
