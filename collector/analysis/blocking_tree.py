"""The blocking tree: the threads and locks that cause the present waits in contention.

A thread waits for a lock, and the holders of the lock may wait themselves. Such a chain has a root.
The root is a holder that does not wait in contention, a lock without a known holder, or a cycle.

A thread stands below one holder, though its lock may have several. The waits are an AND-OR graph,
as in ``wait_for_graph.py``. A wait for a semaphore ends with one holder. Other waits end with all
of them. A thread *can go on* after the holders that it needs, unless it is behind a cycle. The tree
follows that order: a thread stands below a holder that can go on before it. The other threads are
in a cycle or behind one. They stand below a thread of which the same is true.

All threads that wait for one lock with the same holders are one request. So the work is linear in
the number of waits. No function calls itself, because a chain may have thousands of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from locktop.collector.analysis.semaphore_ownership import unit_holders
from locktop.collector.analysis.strong_components import strong_components
from locktop.collector.model import (
    Behind,
    BlockingRoot,
    BlockingTree,
    BlockingWaiter,
    Contents,
    Kind,
    Lock,
    RootKind,
    Thread,
    ThreadState,
    Wait,
)

_NEVER = 1 << 62


class _Request(Struct, eq=False):  # compared by identity
    """The threads that wait for one lock with the same holders."""

    lock: int
    holders: tuple[int, ...]  # each once, in order of tid
    is_or: bool  # one holder is enough
    tids: list[int]
    order: int = _NEVER  # the round in which its threads go on; _NEVER: behind a cycle
    chosen: int = 0  # the holder that the threads stand below
    others: tuple[int, ...] = ()  # the other holders


#: The parent of a thread: another tid, or the key of a root that is no thread.
_Parent = int | tuple[RootKind, int]


def find(snapshot: Contents) -> BlockingTree:
    """Return the blocking tree of a snapshot with classified waits (``Wait.idle``)."""
    waiting = {
        thread.tid: wait
        for thread in snapshot.threads
        if (wait := thread.waiting_for) is not None
        and not wait.idle
        and thread.state is ThreadState.WAITING
    }
    if not waiting:
        return BlockingTree()
    locks = {lock.id: lock for lock in snapshot.locks}
    requests = _requests(snapshot, waiting, locks)
    by_tid = {tid: request for request in requests for tid in request.tids}
    _put_in_order(requests, by_tid)
    cycles = _cycles(by_tid)
    _choose_holders(requests, by_tid, snapshot.threads)
    children = _children(requests, cycles)
    rates = _wait_per_second(snapshot, waiting, requests, locks)
    return _Builder(waiting, by_tid, children, cycles, rates).tree()


# ---- who waits for whom ----


def _requests(
    snapshot: Contents, waiting: Mapping[int, Wait], locks: Mapping[int, Lock]
) -> list[_Request]:
    """Return the requests. A request without holders is for a lock whose holder is not known."""
    units = unit_holders(snapshot)
    requests_by_lock: dict[int, list[tuple[tuple[int, ...], _Request]]] = {}
    for tid, wait in waiting.items():
        holders = wait.holders or _unlisted_holders(wait, locks.get(wait.lock), units)
        of_lock = requests_by_lock.setdefault(wait.lock, [])
        for listed, request in of_lock:
            # Most waits of a lock share one tuple, which may be long.
            if listed is holders or listed == holders:
                request.tids.append(tid)
                break
        else:
            request = _Request(
                wait.lock, tuple(sorted(set(holders))), wait.kind is Kind.SEM, tids=[tid]
            )
            of_lock.append((holders, request))
    return [request for of_lock in requests_by_lock.values() for _, request in of_lock]


def _unlisted_holders(
    wait: Wait, lock: Lock | None, units: Mapping[int, tuple[int, ...]]
) -> tuple[int, ...]:
    """Return the holders of a lock, if the wait has none."""
    if wait.awaits:
        return (wait.awaits,)
    if lock is None:
        return ()
    return lock.holders or units.get(lock.id, ())


def _put_in_order(requests: Sequence[_Request], by_tid: Mapping[int, _Request]) -> None:
    """Fill in ``order``: each request after the requests of the holders that it needs."""
    needed_by: dict[int, list[_Request]] = {}  # by tid of a holder that waits
    left: dict[int, int] = {}  # by id(request): holders that must go on first
    ready: list[_Request] = []
    for request in requests:
        waiting = [tid for tid in request.holders if tid in by_tid]
        for tid in waiting:
            needed_by.setdefault(tid, []).append(request)
        if request.is_or and request.holders:
            left[id(request)] = int(len(waiting) == len(request.holders))
        else:
            left[id(request)] = len(waiting)
        if not left[id(request)]:
            ready.append(request)
    order = 0
    while ready:
        # A round of all that are ready: then the result does not depend on the order of threads.
        following: list[_Request] = []
        for request in ready:
            request.order = order
            for tid in request.tids:
                for next_ in needed_by.get(tid, ()):
                    left[id(next_)] -= 1
                    if left[id(next_)] == 0:
                        following.append(next_)
        ready, order = following, order + 1


def _cycles(by_tid: Mapping[int, _Request]) -> dict[int, tuple[int, ...]]:
    """Return the cycle of each thread that is in one: its tids in order."""
    graph: dict[Hashable, Sequence[Hashable]] = {}
    for tid, request in by_tid.items():
        if request.order == _NEVER:
            # The request is a node too, so that the edges are no more than the waits and holds.
            graph[tid] = (("request", id(request)),)
            graph["request", id(request)] = request.holders
    cycles: dict[int, tuple[int, ...]] = {}
    for component in strong_components(graph):
        members = tuple(sorted(node for node in component if isinstance(node, int)))
        cycles.update(dict.fromkeys(members, members))
    return cycles


def _order_of(tid: int, by_tid: Mapping[int, _Request]) -> int:
    """Return when a thread goes on, -1 if it does not wait."""
    request = by_tid.get(tid)
    return -1 if request is None else request.order


def _choose_holders(
    requests: Sequence[_Request], by_tid: Mapping[int, _Request], threads: Sequence[Thread]
) -> None:
    """Fill in ``chosen``: the holder with the longest hold, and of several the smallest tid.

    The choice is among the holders that can go on before the request. Behind a cycle, the choice is
    among the holders that cannot go on.
    """
    several = {tid for request in requests if len(request.holders) > 1 for tid in request.holders}
    held_s = {
        (thread.tid, held.lock): held.duration_s or 0.0
        for thread in threads
        if thread.tid in several
        for held in thread.holds
    }
    for request in requests:
        if len(request.holders) == 1:
            request.chosen = request.holders[0]
            continue
        if request.order == _NEVER:
            fit = [tid for tid in request.holders if _order_of(tid, by_tid) == _NEVER]
        else:
            fit = [tid for tid in request.holders if _order_of(tid, by_tid) < request.order]
        if fit:
            lock = request.lock
            request.chosen = min(fit, key=lambda tid: (-held_s.get((tid, lock), 0.0), tid))
            request.others = tuple([tid for tid in request.holders if tid != request.chosen])


def _children(
    requests: Sequence[_Request], cycles: Mapping[int, tuple[int, ...]]
) -> dict[_Parent, list[int]]:
    """Return the threads directly below each parent."""
    children: dict[_Parent, list[int]] = {}
    for request in requests:
        acyclic = [tid for tid in request.tids if tid not in cycles]
        if acyclic:
            parent = request.chosen or (RootKind.LOCK, request.lock)
            children.setdefault(parent, []).extend(acyclic)
    for tid, cycle in cycles.items():
        children.setdefault((RootKind.CYCLE, cycle[0]), []).append(tid)
    return children


def _wait_per_second(
    snapshot: Contents,
    waiting: Mapping[int, Wait],
    requests: Sequence[_Request],
    locks: Mapping[int, Lock],
) -> dict[int, float]:
    """Return the seconds that each thread waits per second, as ``BlockingTree`` says, by tid."""
    waiters: dict[int, list[int]] = {}  # by lock
    for request in requests:
        waiters.setdefault(request.lock, []).extend(request.tids)
    rates: dict[int, float] = {}
    for id_, tids in waiters.items():
        lock = locks.get(id_)
        rate = lock.rates.wait if lock is not None else 0.0
        each = rate / len(tids)
        # A saved snapshot has no rates: then the rate is 0 although a wait has lasted.
        if not rate and (
            lock is None or not snapshot.interval_s or any(waiting[tid].duration_s for tid in tids)
        ):
            each = 1.0
        rates.update(dict.fromkeys(tids, each))
    return rates


# ---- the tree ----


_NOTHING = Behind()


class _Waiters(Mapping[int, BlockingWaiter]):
    """The waiters of a tree, made at the first use: the headline needs the roots alone."""

    def __init__(self, make: Callable[[], dict[int, BlockingWaiter]]) -> None:
        self._make = make

    @cached_property
    def _waiters(self) -> dict[int, BlockingWaiter]:
        return self._make()

    def __getitem__(self, tid: int) -> BlockingWaiter:
        return self._waiters[tid]

    def __iter__(self) -> Iterator[int]:
        return iter(self._waiters)

    def __len__(self) -> int:
        return len(self._waiters)


class _Builder:
    """Puts the threads below their parents, and adds up what is behind each."""

    def __init__(
        self,
        waiting: Mapping[int, Wait],
        by_tid: Mapping[int, _Request],
        children: Mapping[_Parent, list[int]],
        cycles: Mapping[int, tuple[int, ...]],
        rates: dict[int, float],
    ) -> None:
        self._waiting = waiting
        self._by_tid = by_tid
        self._cycles = cycles
        self._children = children
        self._behind: dict[int, Behind] = {}  # by tid of a waiter with threads below it
        # Sums over a thread and all threads behind it, by tid. ``rates``: seconds per second.
        self._threads = dict.fromkeys(waiting, 1)
        self._rates = rates
        self._waited_s = {tid: wait.duration_s for tid, wait in waiting.items()}
        self._longest = {tid: (waited_s, -tid) for tid, waited_s in self._waited_s.items()}

    def tree(self) -> BlockingTree:
        keys = [key for key in self._children if key not in self._waiting]
        is_flat = len(keys) == len(self._children)
        roots = [(self._root(key, 1 if is_flat else self._add_up(key)), key) for key in keys]
        roots.sort(
            key=lambda root: (-root[0].behind.waited_s, -root[0].behind.threads, root[0].key)
        )

        def waiters() -> dict[int, BlockingWaiter]:
            return {
                tid: self._waiter(tid, number, depth)
                for number, (_, key) in enumerate(roots)
                for tid, depth in self._top_down(key)
            }

        return BlockingTree(roots=tuple([root for root, _ in roots]), waiters=_Waiters(waiters))

    def _top_down(self, key: _Parent) -> list[tuple[int, int]]:
        """Return the tids below a root with their depths, each after its parent."""
        order = [(tid, 1) for tid in self._children[key]]
        for tid, depth in order:  # the list grows meanwhile
            below = self._children.get(tid)
            if below:
                order.extend([(child, depth + 1) for child in below])
        return order

    def _add_up(self, key: _Parent) -> int:
        """Add up what is behind each thread below a root; return the depth of the deepest one."""
        order = self._top_down(key)
        for tid, _ in reversed(order):
            below = self._children.get(tid)
            if below:
                behind = self._behind[tid] = self._sum_of(below)
                self._threads[tid] += behind.threads
                self._rates[tid] += behind.wait
                self._waited_s[tid] += behind.waited_s
                self._longest[tid] = max(self._longest[behind_tid] for behind_tid in (tid, *below))
        return max([depth for _, depth in order])

    def _sum_of(self, tids: Sequence[int]) -> Behind:
        """Return the sum over threads and what is behind each of them."""
        return Behind(
            threads=sum(map(self._threads.__getitem__, tids)),
            wait=sum(map(self._rates.__getitem__, tids)),
            waited_s=sum(map(self._waited_s.__getitem__, tids)),
            longest=-max(map(self._longest.__getitem__, tids))[1],
        )

    def _sort(self, tids: Sequence[int]) -> tuple[int, ...]:
        """Return the threads with the most time in sum first, and of several the smallest tid."""
        if len(tids) < 2:
            return tuple(tids)
        return tuple(sorted(sorted(tids), key=self._waited_s.__getitem__, reverse=True))

    def _root(self, key: _Parent, depth: int) -> BlockingRoot:
        tids = self._children[key]
        kind, id_ = (RootKind.HOLDER, key) if isinstance(key, int) else key
        members = self._cycles[id_] if kind is RootKind.CYCLE else ()
        return BlockingRoot(
            kind=kind,
            tids=members or ((id_,) if kind is RootKind.HOLDER else ()),
            locks=self._locks_of(tids),
            waiters=self._sort(tids),
            behind=self._sum_of(tids),
            depth=depth,
        )

    def _locks_of(self, tids: Sequence[int]) -> tuple[int, ...]:
        """Return the locks that threads wait for, the most time first."""
        locks = {self._by_tid[tid].lock for tid in tids}
        if len(locks) == 1:
            return tuple(locks)
        waited_s = dict.fromkeys(locks, 0.0)
        for tid in tids:
            waited_s[self._by_tid[tid].lock] += self._waited_s[tid]
        return tuple(sorted(waited_s, key=lambda lock: (-waited_s[lock], lock)))

    def _waiter(self, tid: int, root: int, depth: int) -> BlockingWaiter:
        request = self._by_tid[tid]
        holder, others = request.chosen, request.others
        if tid in self._cycles:
            holder, others = self._cycle_holder(tid, request)
        return BlockingWaiter(
            tid=tid,
            lock=request.lock,
            holder=holder,
            others=others,
            root=root,
            depth=depth,
            waiters=self._sort(self._children.get(tid, ())),
            behind=self._behind.get(tid, _NOTHING),
        )

    def _cycle_holder(self, tid: int, request: _Request) -> tuple[int, tuple[int, ...]]:
        """Return the holder that is in the cycle of the thread, and the other holders.

        A thread that has its lock already waits for itself.
        """
        if tid in request.holders:
            holder = tid
        else:
            cycle = self._cycles[tid]
            holder = next(
                candidate for candidate in request.holders if self._cycles.get(candidate) is cycle
            )
        if holder == request.chosen:
            return holder, request.others
        return holder, tuple([other for other in request.holders if other != holder])
