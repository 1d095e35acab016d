"""Deadlocks: threads that can never go on, whatever the others do.

Why two looks are enough: a thread whose wait has one sequence number in both was in that wait all
the time between them, and a thread that waits releases nothing. So at the moment between the looks
every thread of the cycle waited for what the next one held. One look alone proves nothing: its
threads are read one after the other, while they run.

A thread can go on if it waits for nothing, or if all that its wait needs can be had of threads that
can go on. What is left when nobody more can be found that way is stuck for good. Among those, each
knot of threads that wait for each other is one deadlock, told by a shortest cycle; and so is a
thread that waits for one that ended with the lock, or for somebody where nobody is left.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from msgspec.structs import replace

from locktop.collector.analysis import wait_for_graph
from locktop.collector.analysis.wait_for_graph import Need, Stop, Waits
from locktop.collector.model import BlockReason, Deadlock, DeadlockEdge

#: Threads and needs gone through in search of a knot's shortest cycle, beyond the first search:
#: thousands must not take long.
_STEPS = 4_000
#: A knot in which nobody has a lock is threads that wait for work.
_LOCKED = frozenset({BlockReason.HELD, BlockReason.BEHIND, BlockReason.RUNS, BlockReason.GOT})

#: A thread that waits may then be waiting for another one's release of what it took itself.
HANDED_OVER = (
    "this program releases locks in threads that did not take them, so an owner may be wrong"
)


def confirmed(
    before: Waits, now: Waits, awake: Set[int] = frozenset(), doubt: str = ""
) -> tuple[Deadlock, ...]:
    """Return the deadlocks that both looks showed, the oldest first. ``awake``: see
    ``waitgraph.both``; ``doubt``: why none of them is certain."""
    return found(wait_for_graph.both(before, now, awake), doubt)


def found(waits: Waits, doubt: str = "") -> tuple[Deadlock, ...]:
    """Return the deadlocks of one look, the oldest first."""
    sure = _Knots(_without_doubts(waits.stops), waits.ended)
    deadlocks = [replace(one, certain=not doubt, doubt=doubt) for one in sure.deadlocks()]
    if any(need.doubt for stop in waits.stops.values() for need in stop.needs):
        for one in _Knots(waits.stops, waits.ended).deadlocks():
            # What a certain one explains is not told again.
            if one.doubt and not sure.stuck.intersection(edge.tid for edge in one.cycle):
                deadlocks.append(one)
    return tuple(sorted(deadlocks, key=lambda deadlock: -deadlock.since_s))


def _without_doubts(stops: Mapping[int, Stop]) -> dict[int, Stop]:
    sure: dict[int, Stop] = {}
    for tid, stop in stops.items():
        needs = tuple([need for need in stop.needs if not need.doubt])
        if needs:
            sure[tid] = stop._replace(needs=needs) if len(needs) < len(stop.needs) else stop
    return sure


def unmet(stops: Mapping[int, Stop], ended: Set[int]) -> tuple[set[int], dict[int, Need]]:
    """Return who is stuck for good, and by their ids the needs that nobody will meet."""
    needs = {id(need): need for stop in stops.values() for need in stop.needs}
    waiters: dict[int, list[int]] = {key: [] for key in needs}
    helped_by: dict[int, list[int]] = {}
    for tid, stop in stops.items():
        for need in stop.needs:
            waiters[id(need)].append(tid)
    for key, need in needs.items():
        for tid in need.blockers:
            helped_by.setdefault(tid, []).append(key)
    missing = {key: 1 if n.one_will_do else len(n.blockers) for key, n in needs.items()}
    wanting = {tid: len(stop.needs) for tid, stop in stops.items()}
    free = [tid for tid in helped_by if tid not in stops and tid not in ended]
    while free:
        for key in helped_by.get(free.pop(), ()):
            missing[key] -= 1
            if missing[key] != 0:
                continue
            for tid in waiters[key]:
                wanting[tid] -= 1
                if wanting[tid] == 0:
                    free.append(tid)
    stuck = {tid for tid, count in wanting.items() if count > 0}
    return stuck, {key: need for key, need in needs.items() if missing[key] > 0}


@dataclass(frozen=True, slots=True)
class _Edge:
    """``tid`` needs ``holder``, 0 for nobody."""

    tid: int
    need: Need
    holder: int


class _Knots:
    """The stuck threads of a look and what they wait for, as a graph: from a thread to its needs,
    from a need to those that could meet it. So the edges are as many as the waits and the holders,
    not as many as their pairs. Threads are their tids, needs are numbers below 0."""

    def __init__(self, stops: Mapping[int, Stop], ended: Set[int]) -> None:
        self._stops = stops
        self._ended = ended
        self.stuck, unmet_needs = unmet(stops, ended)
        self._needs = {-1 - n: need for n, need in enumerate(unmet_needs.values())}
        numbers = {id(need): number for number, need in self._needs.items()}
        self._out: dict[int, list[int]] = {}
        for tid in sorted(self.stuck):
            among = stops[tid].needs
            self._out[tid] = [numbers[id(need)] for need in among if id(need) in numbers]
        for number, need in self._needs.items():
            self._out[number] = sorted(need.blockers & self.stuck)

    def deadlocks(self) -> list[Deadlock]:
        """Return them, knots and ends of chains; certain or not is by their doubts."""
        into = _turned(self._out)
        told = [
            self._deadlock(cycle, self._doubt(component), self._reaching(component, into))
            for component in _components(self._out)
            if (cycle := self._cycle(component))
        ]
        for number, need in self._needs.items():
            for nobody in self._ends(need):
                waiter = max(into[number], key=lambda tid: self._stops[tid].duration_s)
                behind = self._reaching({number}, into)
                told.append(self._deadlock((_Edge(waiter, need, nobody),), need.doubt, behind))
        return told

    def _ends(self, need: Need) -> Iterable[int]:
        """Return where a chain ends at a need: threads that are no more, 0 for nobody."""
        gone = sorted(need.blockers & self._ended)
        if need.one_will_do:
            return (gone or [0])[:1] if len(gone) == len(need.blockers) else ()
        return gone

    def _deadlock(self, cycle: Sequence[_Edge], doubt: str, reaching: Set[int]) -> Deadlock:
        tids = {edge.tid for edge in cycle}
        return Deadlock(
            certain=not doubt,
            since_s=min(self._stops[tid].duration_s for tid in tids),
            cycle=tuple([self._told(edge) for edge in cycle]),
            doubt=doubt,
            stuck=tuple(sorted(reaching - tids)),
            # What was not there at first came last.
            is_lower_bound=all(self._stops[tid].is_lower_bound for tid in tids),
        )

    def _told(self, edge: _Edge) -> DeadlockEdge:
        stop, need = self._stops[edge.tid], edge.need
        site = need.sites.get(edge.holder, 0)
        return DeadlockEdge(edge.tid, stop.lock, edge.holder, stop.stack, site, need.how)

    def _doubt(self, component: Set[int]) -> str:
        doubts = {need.doubt for number in component if (need := self._needs.get(number))}
        return min(doubts - {""}, default="")

    def _reaching(self, nodes: Set[int], into: Mapping[int, Sequence[int]]) -> set[int]:
        """Return the threads from which a way leads to one of the nodes."""
        reached, work = set(nodes), list(nodes)
        while work:
            for node in into.get(work.pop(), ()):
                if node not in reached:
                    reached.add(node)
                    work.append(node)
        return {node for node in reached if node > 0}

    # ---- shortest cycles ----

    def _cycle(self, component: Set[int]) -> tuple[_Edge, ...]:
        """Return a shortest cycle that begins with its lowest tid; none of a knot in which threads
        wait for work."""
        needs = [self._needs[node] for node in component if node < 0]
        if len(component) < 2 or not (
            all(not need.doubt for need in needs) or any(need.how in _LOCKED for need in needs)
        ):
            return ()
        best: tuple[_Edge, ...] = ()
        steps = 0
        for start in sorted(node for node in component if node > 0):
            cycle, taken = self._cycle_through(component, start)
            steps += taken
            if not best or len(cycle) < len(best):
                best = cycle
            if len(best) == 1 or 2 * len(best) == len(component) or steps > _STEPS:
                break
        first = best.index(min(best, key=lambda edge: edge.tid))
        return best[first:] + best[:first]

    def _cycle_through(self, component: Set[int], start: int) -> tuple[tuple[_Edge, ...], int]:
        """Return a shortest one through a thread, and how many steps were taken."""
        came_by: dict[int, int] = {}
        line = deque([start])
        while start not in came_by:
            node = line.popleft()
            for following in self._out[node]:
                if following in component and following not in came_by:
                    came_by[following] = node
                    line.append(following)
        walked: list[_Edge] = []
        holder = start
        while not walked or holder != start:
            number = came_by[holder]
            tid = came_by[number]
            walked.append(_Edge(tid, self._needs[number], holder))
            holder = tid
        return tuple(reversed(walked)), len(came_by)


def _turned(graph: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    turned: dict[int, list[int]] = {}
    for node, out in graph.items():
        for following in out:
            turned.setdefault(following, []).append(node)
    return turned


def _components(graph: Mapping[int, Sequence[int]]) -> list[set[int]]:
    """Strongly connected components (Tarjan 1972), without recursion: chains may be long."""
    order: dict[int, int] = {}
    lowest: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    components: list[set[int]] = []
    for root in graph:
        if root in order:
            continue
        work = [(root, iter(graph[root]))]
        while work:
            node, out = work[-1]
            if node not in order:
                order[node] = lowest[node] = len(order)
                path.append(node)
                on_path.add(node)
            following = next((n for n in out if n not in order or n in on_path), None)
            if following is not None and following not in order:
                work.append((following, iter(graph[following])))
                continue
            if following is not None:
                lowest[node] = min(lowest[node], order[following])
                continue
            work.pop()
            if work:
                above = work[-1][0]
                lowest[above] = min(lowest[above], lowest[node])
            if lowest[node] == order[node]:
                components.append(_cut(path, on_path, node))
    return components


def _cut(path: list[int], on_path: set[int], node: int) -> set[int]:
    component: set[int] = set()
    while node not in component:
        component.add(path.pop())
    on_path -= component
    return component
