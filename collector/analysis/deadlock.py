"""Deadlocks: cycles in the wait-for graph that two looks showed unchanged.

Why that is enough: a thread whose wait has one sequence number in both looks was in that wait all
the time between them, and a thread that waits releases nothing. So at the moment between the looks
every thread of the cycle waited for what the next one held. One look alone proves nothing: its
threads are read one after the other, while they run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from locktop.collector.analysis.waitgraph import Edge
from locktop.collector.model import Deadlock, DeadlockEdge

#: Threads of one knot from which a shortest cycle is sought: thousands must not take long.
_STARTS = 64


#: A thread that waits may then be waiting for another one's release of what it took itself.
HANDED_OVER = (
    "this program releases locks in threads that did not take them, so an owner may be wrong"
)
#: locktop.h has no word for a wait with an end.
MAY_GIVE_UP = "a wait for one of the program's own locks may give up by itself"


def confirmed(before: Iterable[Edge], now: Iterable[Edge], doubt: str = "") -> tuple[Deadlock, ...]:
    """Return the deadlocks among the edges that both looks showed, the oldest first. ``doubt`` is
    why none of them is certain."""
    earlier = frozenset(before)
    found = [_deadlock(cycle, doubt) for cycle in cycles(edge for edge in now if edge in earlier)]
    return tuple(sorted(found, key=lambda deadlock: -deadlock.since_s))


def _deadlock(cycle: tuple[Edge, ...], doubt: str) -> Deadlock:
    if not doubt and any(edge.may_give_up for edge in cycle):
        doubt = MAY_GIVE_UP
    return Deadlock(
        certain=not doubt,
        since_s=min(edge.for_s for edge in cycle),
        cycle=tuple(
            DeadlockEdge(e.tid, e.lock, e.holder, e.stack, e.site, e.behind) for e in cycle
        ),
        doubt=doubt,
    )


def cycles(edges: Iterable[Edge]) -> list[tuple[Edge, ...]]:
    """Return one shortest cycle of each knot of threads that wait for each other.

    Each cycle begins with its lowest tid; an edge's holder is the next edge's tid.
    """
    edges = list(edges)
    waiting = {edge.tid for edge in edges}
    graph: dict[int, list[Edge]] = {}
    for edge in edges:
        if edge.holder not in waiting:
            continue  # most holders do their work: no cycle leads through them
        graph.setdefault(edge.tid, []).append(edge)
    for out in graph.values():
        out.sort(key=lambda edge: (edge.holder, edge.lock))
    knots = (_shortest_cycle(graph, knot) for knot in _knots(graph))
    return sorted((cycle for cycle in knots if cycle), key=lambda cycle: cycle[0].tid)


def _knots(graph: dict[int, list[Edge]]) -> list[set[int]]:
    """Strongly connected components (Tarjan 1972), without recursion: chains may be long."""
    order: dict[int, int] = {}
    lowest: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    knots: list[set[int]] = []
    for root in graph:
        if root in order:
            continue
        work = [(root, iter(graph[root]))]
        while work:
            tid, out = work[-1]
            if tid not in order:
                order[tid] = lowest[tid] = len(order)
                path.append(tid)
                on_path.add(tid)
            following = next((e.holder for e in out if _leads_on(e.holder, order, on_path)), None)
            if following is not None and following not in order:
                work.append((following, iter(graph.get(following, ()))))
                continue
            if following is not None:
                lowest[tid] = min(lowest[tid], order[following])
                continue
            work.pop()
            if work:
                above = work[-1][0]
                lowest[above] = min(lowest[above], lowest[tid])
            if lowest[tid] == order[tid]:
                knots.append(_cut(path, on_path, tid))
    return knots


def _leads_on(tid: int, order: dict[int, int], on_path: set[int]) -> bool:
    return tid not in order or tid in on_path


def _cut(path: list[int], on_path: set[int], tid: int) -> set[int]:
    at = path.index(tid)
    knot = set(path[at:])
    del path[at:]
    on_path -= knot
    return knot


def _shortest_cycle(graph: dict[int, list[Edge]], knot: set[int]) -> tuple[Edge, ...]:
    best: tuple[Edge, ...] = ()
    for start in sorted(knot)[:_STARTS]:
        found = _cycle_through(graph, knot, start)
        if found and (not best or len(found) < len(best)):
            best = found
        if best and len(best) <= 2:
            break  # a shorter one could only be a thread waiting for itself, found as such below
    for tid in sorted(knot):
        for edge in graph.get(tid, ()):
            if edge.holder == tid:
                return (edge,)
    return best


def _cycle_through(graph: dict[int, list[Edge]], knot: set[int], start: int) -> tuple[Edge, ...]:
    came_by: dict[int, Edge] = {}
    line = deque([start])
    while line:
        tid = line.popleft()
        for edge in graph.get(tid, ()):
            if edge.holder not in knot or edge.holder in came_by:
                continue
            came_by[edge.holder] = edge
            if edge.holder == start:
                return _walked_back(came_by, start)
            line.append(edge.holder)
    return ()


def _walked_back(came_by: dict[int, Edge], start: int) -> tuple[Edge, ...]:
    walked = [came_by[start]]
    while walked[-1].tid != start:
        walked.append(came_by[walked[-1].tid])
    return tuple(reversed(walked))
