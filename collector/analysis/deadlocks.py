"""Deadlocks: threads that can never go on, whatever the other threads do.

Two readings in one scan are enough to be certain. If a wait has the same sequence number in both
readings, the thread was in that wait throughout. A waiting thread releases nothing. So at
a moment between the readings, each thread of the cycle waited for the next thread. One reading
alone proves nothing, because it reads the threads one after the other while they run.

A thread can go on if it waits for nothing. A thread also can go on if threads that can go on
satisfy all its requests. All other threads are stuck for good. This is the graph reduction of Holt
("Some deadlock properties of computer systems", ACM Computing Surveys 1972). Among the stuck
threads there are two sorts of deadlock:

- A strongly connected component of threads that wait for each other. A shortest cycle in the
  component stands for the deadlock. In a large component, only some cycles are compared.
- A thread that waits for a thread that ended with the lock, or whose wait no thread can end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence, Set

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.analysis.strong_components import strong_components
from locktop.collector.analysis.wait_for_graph import (
    BlockedThread,
    Request,
    WaitForGraph,
    unchanged_part,
)
from locktop.collector.model import BlockReason, Deadlock, DeadlockEdge

#: How many nodes the search for a component's shortest cycle may visit after its first search. The
#: limit exists because a cycle of thousands of threads must not take long.
_MAX_STEPS = 4_000
#: How many waits and providers the searches for the threads behind the deadlocks may visit in all.
#: In a chain of 2,500 deadlocks, 6 million threads would be behind one of them.
MAX_REACHED = 500_000
#: A component without one of these reasons is threads that wait for work.
_LOCK_REASONS = frozenset({BlockReason.HELD, BlockReason.BEHIND, BlockReason.RUNS, BlockReason.GOT})

#: A doubt: a waiting thread may wait for another thread to release a lock that it took itself.
HANDED_OVER = (
    "this program releases locks in threads that did not take them, so an owner may be wrong"
)


def find_confirmed(
    before: WaitForGraph, now: WaitForGraph, awake: Set[int] = frozenset(), doubt: str = ""
) -> tuple[Deadlock, ...]:
    """Return the deadlocks that two readings show, the oldest first.

    Args:
        before: The graph of the first reading.
        now: The graph of the second reading.
        awake: See ``wait_for_graph.unchanged``.
        doubt: Why no deadlock of this process is certain, "" for no doubt.
    """
    return find(unchanged_part(before, now, awake), doubt)


def find(graph: WaitForGraph, doubt: str = "") -> tuple[Deadlock, ...]:
    """Return the deadlocks in a graph, the oldest first. ``doubt``: see ``find_confirmed``.

    A deadlock over doubtful requests is reported only if no certain deadlock explains it.
    """
    certain = _StuckGraph(drop_doubtful(graph.blocked), graph.ended)
    deadlocks = [
        replace(deadlock, certain=not doubt, doubt=doubt) for deadlock in certain.deadlocks()
    ]
    if any(request.doubt for thread in graph.blocked.values() for request in thread.requests):
        for possible in _StuckGraph(graph.blocked, graph.ended).deadlocks():
            if possible.doubt and not certain.stuck.intersection(
                edge.tid for edge in possible.cycle
            ):
                deadlocks.append(possible)
    return tuple(sorted(deadlocks, key=lambda deadlock: -deadlock.since_s))


def drop_doubtful(blocked: Mapping[int, BlockedThread]) -> dict[int, BlockedThread]:
    """Return the threads with their requests without doubt; a thread without one is left out."""
    certain: dict[int, BlockedThread] = {}
    for tid, thread in blocked.items():
        requests = tuple([request for request in thread.requests if not request.doubt])
        if len(requests) == len(thread.requests):
            certain[tid] = thread
        elif requests:
            certain[tid] = thread._replace(requests=requests)
    return certain


def reduce_graph(
    blocked: Mapping[int, BlockedThread], ended: Set[int]
) -> tuple[set[int], list[Request]]:
    """Return the tids of the threads that are stuck for good, and the requests that no thread will
    satisfy."""
    requests = {id(request): request for thread in blocked.values() for request in thread.requests}
    waiters: dict[int, list[int]] = {key: [] for key in requests}
    requests_to: dict[int, list[int]] = {}  # by provider
    for tid, thread in blocked.items():
        for request in thread.requests:
            waiters[id(request)].append(tid)
    for key, request in requests.items():
        for tid in request.providers:
            requests_to.setdefault(tid, []).append(key)
    missing = {
        key: 1 if request.is_or else len(request.providers) for key, request in requests.items()
    }
    unsatisfied = {tid: len(thread.requests) for tid, thread in blocked.items()}
    free = [tid for tid in requests_to if tid not in blocked and tid not in ended]
    while free:
        for key in requests_to.get(free.pop(), ()):
            missing[key] -= 1
            if missing[key] != 0:
                continue
            for tid in waiters[key]:
                unsatisfied[tid] -= 1
                if unsatisfied[tid] == 0:
                    free.append(tid)
    stuck = {tid for tid, count in unsatisfied.items() if count > 0}
    return stuck, [request for key, request in requests.items() if missing[key] > 0]


class _Edge(Struct, frozen=True):
    """``tid`` has a request to ``provider``, 0 for no thread."""

    tid: int
    request: Request
    provider: int


class _StuckGraph:
    """The stuck threads and their requests as a graph, from threads to requests and from requests
    to providers.

    So the graph has as many edges as there are waits and providers, not as many as their pairs. The
    node of a thread is its tid; the nodes of requests are numbers below 0.
    """

    def __init__(self, blocked: Mapping[int, BlockedThread], ended: Set[int]) -> None:
        self._blocked = blocked
        self._ended = ended
        self.stuck, unsatisfied = reduce_graph(blocked, ended)
        self._requests = {-1 - n: request for n, request in enumerate(unsatisfied)}
        nodes = {id(request): node for node, request in self._requests.items()}
        self._successors: dict[int, list[int]] = {}
        for tid in sorted(self.stuck):
            requests = blocked[tid].requests
            self._successors[tid] = [
                nodes[id(request)] for request in requests if id(request) in nodes
            ]
        for node, request in self._requests.items():
            self._successors[node] = sorted(request.providers & self.stuck)
        self._predecessors = _reverse(self._successors)
        self._reached: set[int] = set()
        self._visits_left = MAX_REACHED

    def deadlocks(self) -> list[Deadlock]:
        """Return the deadlocks: components, and ends of chains. A deadlock without a doubt is
        certain."""
        deadlocks = []
        for component in map(set, strong_components(self._successors)):
            if cycle := self._shortest_cycle(component):
                deadlocks.append(self._deadlock(cycle, self._doubt(component), component))
        for node, request in self._requests.items():
            providers = self._chain_ends(request)
            if not providers:
                continue
            waiters = self._predecessors[node]
            waiter = max(waiters, key=lambda tid: self._blocked[tid].duration_s)
            for provider in providers:
                edge = _Edge(waiter, request, provider)
                deadlocks.append(self._deadlock((edge,), request.doubt, {node}))
        return deadlocks

    def _chain_ends(self, request: Request) -> Sequence[int]:
        """Return the providers at which a chain ends: threads that have ended, 0 for no thread."""
        ended = sorted(request.providers & self._ended)
        if request.is_or:
            return (ended or [0])[:1] if len(ended) == len(request.providers) else ()
        return ended

    def _deadlock(self, cycle: Sequence[_Edge], doubt: str, nodes: Set[int]) -> Deadlock:
        """Return the deadlock of a cycle in some nodes, with the threads behind these nodes."""
        tids = {edge.tid for edge in cycle}
        reaching, is_all = self._threads_that_reach(nodes)
        # The newest wait closed the cycle.
        newest = min((self._blocked[tid] for tid in tids), key=lambda thread: thread.duration_s)
        return Deadlock(
            certain=not doubt,
            since_s=newest.duration_s,
            cycle=tuple([self._deadlock_edge(edge) for edge in cycle]),
            doubt=doubt,
            stuck=tuple(sorted(reaching - tids)),
            stuck_in_part=not is_all,
            is_lower_bound=newest.is_lower_bound,
        )

    def _deadlock_edge(self, edge: _Edge) -> DeadlockEdge:
        thread, request = self._blocked[edge.tid], edge.request
        return DeadlockEdge(
            tid=edge.tid,
            waits_for=thread.lock,
            held_by=edge.provider,
            stack=thread.stack,
            site=request.sites.get(edge.provider, 0),
            reason=request.reason,
        )

    def _doubt(self, component: Set[int]) -> str:
        doubts = {request.doubt for node in component if (request := self._requests.get(node))}
        return min(doubts - {""}, default="")

    def _threads_that_reach(self, nodes: Set[int]) -> tuple[set[int], bool]:
        """Return the threads from which a path leads to one of the nodes, and whether these are
        all. After MAX_REACHED visits, a thread that an earlier search reached is left out."""
        left_out = self._reached if self._visits_left <= 0 else frozenset()
        is_all = True
        reached, work = set(nodes), list(nodes)
        while work:
            waiting = self._predecessors.get(work.pop(), ())
            self._visits_left -= len(waiting)
            for node in waiting:
                if node in reached:
                    continue
                if node in left_out:
                    is_all = False
                    continue
                reached.add(node)
                work.append(node)
        self._reached |= reached
        return {node for node in reached if node > 0}, is_all

    # ---- shortest cycles ----

    def _shortest_cycle(self, component: Set[int]) -> tuple[_Edge, ...]:
        """Return a shortest cycle, which begins with its lowest tid. A component of threads that
        wait for work has none."""
        requests = [self._requests[node] for node in component if node < 0]
        if not (
            all(not request.doubt for request in requests)
            or any(request.reason in _LOCK_REASONS for request in requests)
        ):
            return ()
        edges = sum(to in component for node in component for to in self._successors[node])
        is_ring = edges == len(component)  # every search would find the same cycle
        best: tuple[_Edge, ...] = ()
        steps = 0
        for start in sorted(node for node in component if node > 0):
            cycle, visited = self._cycle_through(component, start)
            steps += visited
            if not best or len(cycle) < len(best):
                best = cycle
            if is_ring or len(best) == 1 or steps > _MAX_STEPS:
                break
        first = best.index(min(best, key=lambda edge: edge.tid))
        return best[first:] + best[:first]

    def _cycle_through(self, component: Set[int], start: int) -> tuple[tuple[_Edge, ...], int]:
        """Return a shortest cycle through a thread, and how many nodes the search visited."""
        came_from: dict[int, int] = {}
        queue = deque([start])
        while start not in came_from:
            node = queue.popleft()
            for successor in self._successors[node]:
                if successor in component and successor not in came_from:
                    came_from[successor] = node
                    queue.append(successor)
        cycle: list[_Edge] = []
        provider = start
        while not cycle or provider != start:
            request = came_from[provider]
            tid = came_from[request]
            cycle.append(_Edge(tid, self._requests[request], provider))
            provider = tid
        return tuple(reversed(cycle)), len(came_from)


def _reverse(graph: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    predecessors: dict[int, list[int]] = {}
    for node, successors in graph.items():
        for successor in successors:
            predecessors.setdefault(successor, []).append(node)
    return predecessors
