"""The blocking tree: which threads and locks the present waits lead to, and what is behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from msgspec import Struct

from locktop.collector.model.kinds import RootKind


class Behind(Struct, frozen=True, gc=False):
    """The threads that wait behind something, directly or behind a thread that waits."""

    threads: int = 0  # number of threads
    #: seconds that they wait per second, for the locks that they wait for now (BlockingTree)
    wait: float = 0.0
    waited_s: float = 0.0  # seconds of their present waits, in sum
    longest: int = 0  # tid of the longest present wait; 0: no thread


class BlockingWaiter(Struct, frozen=True, gc=False):
    """A thread that waits in contention. Each stands in the tree once."""

    tid: int
    lock: int  # id of the lock that the thread waits for
    holder: int  # tid of the holder that the thread stands below; 0: not known
    others: tuple[int, ...]  # tids of the further holders of the lock, in order
    root: int  # index in BlockingTree.roots
    depth: int  # 1: directly below the root; a member of a cycle has 1
    waiters: tuple[int, ...]  # tids of the threads directly below, most time behind first
    behind: Behind


class BlockingRoot(Struct, frozen=True, gc=False):
    """The root of a tree: the cause of all waits in the tree."""

    kind: RootKind
    tids: tuple[int, ...]  # HOLDER: the thread; CYCLE: its threads in order; LOCK: none
    #: ids of the locks of the root for which threads wait, most time behind first
    locks: tuple[int, ...]
    waiters: tuple[int, ...]  # tids of the threads directly below, most time behind first
    behind: Behind  # of a cycle with its own threads
    depth: int  # of the deepest thread of the tree, at least 1

    @property
    def lock(self) -> int:
        """The id of the lock with the most time behind it."""
        return self.locks[0]

    @property
    def key(self) -> tuple[str, int]:
        """The same from one scan to the next."""
        return self.kind.value, self.tids[0] if self.tids else self.lock


class BlockingTree(Struct, frozen=True, gc=False):
    """All present waits in contention, as trees. A thread that waits for work is in no tree.

    ``Behind.wait`` is about the last interval. The threads that wait for a lock now have equal
    parts of its ``LockRates.wait``. So the sum over the roots is the sum over these locks.
    Where that rate is not known, each thread counts 1 second per second.
    """

    roots: tuple[BlockingRoot, ...] = ()  # the longest present waits in sum first
    waiters: Mapping[int, BlockingWaiter] = MappingProxyType({})  # by tid

    def walk(self, root: BlockingRoot) -> Iterator[BlockingWaiter]:
        """Yield the waiters below a root, each before the waiters below it."""
        open_ = list(reversed(root.waiters))
        while open_:
            waiter = self.waiters[open_.pop()]
            yield waiter
            open_.extend(reversed(waiter.waiters))
