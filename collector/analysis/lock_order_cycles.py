"""Potential deadlocks: cycles in the order in which threads took locks.

The algorithm follows iGoodlock: Joshi, Park, Sen, Naik, "A randomized dynamic program analysis
technique for detecting real deadlocks", PLDI 2009. An ``ObservedOrder`` says that a thread
requested a lock while it held other locks. A cycle of them can become a deadlock only if

- each order is of another thread,
- the threads could run at the same time, see ``happens_before.py``,
- no two threads held one common lock, which would exclude them from each other, and
- each thread waits for a lock in a mode that the hold of the next thread denies.

Facts that are not known lower the confidence, and ``OrderCycle.why`` names them. A fact against a
cycle removes the cycle. A cycle is only counted, not reported, if it is not known that its locks
are the same locks throughout.

On request the search also finds cycles of lock classes. Their locks are of the same classes, and
need not be the same locks. Most of these cycles cannot happen.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from math import prod
from typing import TypeVar

from msgspec import Struct, field

from locktop.collector.analysis.happens_before import HappensBefore, ThreadLife
from locktop.collector.analysis.lock_order_graph import Instance
from locktop.collector.analysis.strong_components import strong_components
from locktop.collector.model import Confidence, OrderCycle, OrderEdge, OrderWay

_MAX_CYCLES = 32
_MAX_CLASS_CYCLES = 16
#: The search finds all cycles up to this length, and a shortest longer cycle through each lock.
_SHORT = 4
#: The limit of one search.
_MAX_STEPS = 100_000
#: How many combinations of orders the search tries for one cycle of locks.
_MAX_COMBINATIONS = 500
#: How many combinations with different stacks the result has of one cycle, and the limit of the
#: search for them.
_MAX_WAYS = 64
_MAX_STEPS_FOR_WAYS = 5_000

_Node = Hashable
Item = TypeVar("Item")
_RANK = {confidence: rank for rank, confidence in enumerate(Confidence)}


class HeldLock(Struct, frozen=True):
    """A lock that a thread held when it requested another lock."""

    lock: int  # id
    generation: int
    shared: bool  # for reading
    site: int  # the call site that took the lock
    is_identified: bool = False  # no other lock has this id and generation

    @property
    def instance(self) -> Instance:
        """The lock in this generation."""
        return self.lock, self.generation


class ObservedOrder(Struct, frozen=True):
    """A thread requested a lock while it held other locks."""

    epoch: int  # the joins between two epochs may be unknown
    lock: int  # id of the requested lock
    generation: int
    shared: bool  # requested for reading
    is_truncated: bool  # the thread held more locks than ``held`` has
    stack: int
    held: tuple[HeldLock, ...]
    #: Which threads did so, and when: the serial number of a thread and a segment of its life.
    observed_in: tuple[tuple[int, int], ...]
    is_identified: bool = False  # as HeldLock.is_identified, of the requested lock

    @property
    def instance(self) -> Instance:
        """The requested lock in this generation."""
        return self.lock, self.generation


class LockFacts(Struct, frozen=True):
    """Facts about a lock that its observed orders do not have."""

    has_own_address: bool = True  # no other lock had its address in this generation
    writers_first: bool = False  # readers queue behind a waiting writer
    handed_over: bool = False  # other threads release it, so its holder is not known
    class_name: str = ""  # the name of its class, see lock_classes.py; "" without a class


class PotentialDeadlocks(Struct, frozen=True):
    """The potential deadlocks in a set of orders."""

    cycles: tuple[OrderCycle, ...] = ()  # by confidence, then by length
    unproven: int = 0  # how many more cycles there are if one address always is one lock
    is_cut: bool = False  # the search ended at a limit: there may be further cycles


def find(
    orders: Sequence[ObservedOrder],
    lives: Mapping[int, ThreadLife],
    facts: Mapping[int, LockFacts],
    of_classes: bool = False,
) -> PotentialDeadlocks:
    """Return the potential deadlocks in a set of orders.

    Args:
        orders: The observed orders.
        lives: The lives of the threads by serial number.
        facts: By lock id; orders with a lock without facts are ignored.
        of_classes: Whether to find cycles of lock classes too.
    """
    search = _Search(lives, facts)
    usable = [order for order in orders if search.is_usable(order)]
    links = [_Link(order, held) for order in usable for held in order.held]
    proven = [link for link in links if search.is_proven(link)]
    cycles = list(search.first_cycles(proven, _MAX_CYCLES))
    if of_classes and any(lock_facts.class_name for lock_facts in facts.values()):
        by_class = [link for link in links if search.is_proven(link, by_class=True)]
        cycles += search.first_cycles(by_class, _MAX_CLASS_CYCLES, by_class=True)
    cycles.sort(key=lambda cycle: (_RANK[cycle.confidence], len(cycle.edges)))
    is_cut = search.is_cut
    more = search.first_cycles(links, _MAX_CYCLES) if len(proven) < len(links) else ()
    return PotentialDeadlocks(tuple(cycles), len(more), is_cut)


class _Link(Struct, frozen=True):
    """One order with one of its held locks: an edge of the graph of locks."""

    order: ObservedOrder
    held: HeldLock


class _Combination(Struct):
    """A cycle of certain orders, by certain threads."""

    links: tuple[_Link, ...]
    serials: tuple[int, ...]
    doubts: dict[str, Confidence] = field(default_factory=dict)

    @property
    def confidence(self) -> Confidence:
        return max(self.doubts.values(), key=_RANK.__getitem__, default=Confidence.HIGH)


class _Search:
    def __init__(self, lives: Mapping[int, ThreadLife], facts: Mapping[int, LockFacts]) -> None:
        self._happens_before = HappensBefore(lives)
        self._lives = lives
        self._facts = facts
        self._steps = 0
        self._limit = _MAX_STEPS
        self._reported: set[Hashable] = set()
        #: Whether a search ended at a limit.
        self.is_cut = False

    def is_usable(self, order: ObservedOrder) -> bool:
        """Return whether all locks of an order are known and have reliable holders."""
        locks = [order.lock, *(held.lock for held in order.held)]
        return all(lock in self._facts and not self._facts[lock].handed_over for lock in locks)

    def is_proven(self, link: _Link, by_class: bool = False) -> bool:
        """Return whether the locks of a link are known to be the same locks throughout.
        ``by_class``: or locks of the same class."""
        order, held = link.order, link.held
        return all(
            identified
            or self._facts[lock].has_own_address
            or (by_class and self._facts[lock].class_name)
            for lock, identified in (
                (order.lock, order.is_identified),
                (held.lock, held.is_identified),
            )
        )

    # ---- cycles of locks ----

    def first_cycles(
        self, links: Iterable[_Link], count: int, by_class: bool = False
    ) -> list[OrderCycle]:
        """Return at most ``count`` of cycles(), and note whether that leaves out some."""
        cycles = list(islice(self._cycles(links, by_class), count + 1))
        self.is_cut |= len(cycles) > count or self._steps > _MAX_STEPS
        self.is_cut |= self._happens_before.is_exhausted
        return cycles[:count]

    def _cycles(self, links: Iterable[_Link], by_class: bool = False) -> Iterator[OrderCycle]:
        """Yield the cycles that were not yielded before, the shortest first. ``by_class``: one node
        stands for all locks of a class; cycles that exist without classes are not yielded."""
        graph: dict[_Node, dict[_Node, list[_Link]]] = {}
        for link in links:
            from_ = self._node(link.order.epoch, link.held.instance, by_class)
            to = self._node(link.order.epoch, link.order.instance, by_class)
            if from_ != to:
                graph.setdefault(from_, {}).setdefault(to, []).append(link)
        self._steps = 0
        for nodes in self._node_cycles(graph):
            ways, are_all = self._ways([graph[a][b] for a, b in _pairs(nodes)], by_class)
            signatures = {self._signature(way) for way in ways}
            if not signatures <= self._reported:
                self._reported |= signatures
                yield self._cycle(ways, are_all, by_class)

    def _node(self, epoch: int, instance: Instance, by_class: bool) -> _Node:
        name = self._facts[instance[0]].class_name if by_class else ""
        return (epoch, name) if name else (epoch, instance)

    def _node_cycles(
        self, graph: Mapping[_Node, Mapping[_Node, object]]
    ) -> Iterator[Sequence[_Node]]:
        components = strong_components(graph)
        for length in range(2, _SHORT + 1):
            for component in components:
                yield from self._cycles_of_length(graph, component, length)
        longer = (
            self._shortest(graph, component, index)
            for component in components
            for index in range(len(component))
        )
        yield from sorted((cycle for cycle in longer if len(cycle) > _SHORT), key=len)

    def _cycles_of_length(
        self, graph: Mapping[_Node, Mapping[_Node, object]], component: Sequence[_Node], length: int
    ) -> Iterator[Sequence[_Node]]:
        """Yield each cycle of a length once: from its node that comes first in ``component``."""
        position = {node: index for index, node in enumerate(component)}
        for first in component:
            paths: list[list[_Node]] = [[first]]
            while paths:
                path = paths.pop()
                self._steps += 1
                if self._steps > self._limit:
                    return
                successors = graph[path[-1]]
                if len(path) == length:
                    if first in successors:
                        yield path
                    continue
                paths += (
                    [*path, node]
                    for node in successors
                    if position.get(node, -1) > position[first] and node not in path
                )

    def _shortest(
        self, graph: Mapping[_Node, Mapping[_Node, object]], component: Sequence[_Node], index: int
    ) -> Sequence[_Node]:
        """Return a shortest cycle through the node at a position of ``component``, () if there is
        none. The cycle has no node from before that position."""
        first, allowed = component[index], set(component[index:])
        came_from: dict[_Node, _Node] = {}
        level: list[_Node] = [first]
        while level and self._steps <= self._limit:
            next_level: list[_Node] = []
            for node in level:
                self._steps += 1
                if first in graph[node]:
                    return _path(came_from, first, node)
                for other in graph[node]:
                    if other in allowed and other not in came_from:
                        came_from[other] = node
                        next_level.append(other)
            level = next_level
        return ()

    # ---- combinations of orders for one cycle of locks ----

    def _ways(
        self, links: Sequence[Sequence[_Link]], by_class: bool
    ) -> tuple[list[_Combination], bool]:
        """Return the best combination of each way, the best first, and whether these are all ways.
        A way is a stack for each link."""
        groups = [_group_by_stack(of_edge) for of_edge in links]
        combinations: list[_Combination] = []
        are_all = prod(map(len, groups)) <= _MAX_WAYS
        left, steps = _MAX_COMBINATIONS, 0
        for way in islice(product(*groups), _MAX_WAYS):
            best, tried = self._best_combination(way, by_class, left)
            if best is not None:
                if not combinations:  # the other ways have a limit of their own
                    steps, left = self._steps, _MAX_COMBINATIONS
                    self._limit = steps + _MAX_STEPS_FOR_WAYS
                combinations.append(best)
            elif not combinations:
                left -= tried
            if self._steps > self._limit or not left:
                are_all = False
                self.is_cut |= not combinations
                break
        if combinations:
            self._steps, self._limit = steps, _MAX_STEPS
        return sorted(combinations, key=lambda combination: _RANK[combination.confidence]), are_all

    def _best_combination(
        self, links: Sequence[Sequence[_Link]], by_class: bool, count: int
    ) -> tuple[_Combination | None, int]:
        """Return the best of the first ``count`` combinations, and how many were tried."""
        best: _Combination | None = None
        tried = 0
        for chosen in islice(self._combinations(links, ()), count):
            tried += 1
            if by_class and not (_is_mixed(chosen) and self._are_of_different_classes(chosen)):
                continue
            serials = self._threads(chosen, (), ())
            if serials is None:
                continue
            combination = _Combination(chosen, serials, self._doubts(chosen, serials, by_class))
            if best is None or _RANK[combination.confidence] < _RANK[best.confidence]:
                best = combination
            if by_class or best.confidence is Confidence.HIGH:
                break
        return best, tried

    def _combinations(
        self, links: Sequence[Sequence[_Link]], chosen: tuple[_Link, ...]
    ) -> Iterator[tuple[_Link, ...]]:
        if len(chosen) == len(links):
            if self._blocks(chosen[-1], chosen[0]):
                yield chosen
            return
        for link in links[len(chosen)]:
            self._steps += 1
            if self._steps > self._limit:
                return
            if chosen and not self._blocks(chosen[-1], link):
                continue
            if not any(_exclude_each_other(link.order, other.order) for other in chosen):
                yield from self._combinations(links, (*chosen, link))

    def _blocks(self, waiter: _Link, holder: _Link) -> bool:
        """Return whether a hold may block a request. A reader waits for a reader only if a writer
        waits between them."""
        both_read = waiter.order.shared and holder.held.shared
        return not both_read or self._facts[holder.held.lock].writers_first

    def _are_of_different_classes(self, links: Sequence[_Link]) -> bool:
        """Return whether no two threads hold locks of one class. Such a lock could be common to
        both threads and exclude them from each other."""
        names = [
            {self._facts[held.lock].class_name for held in link.order.held} - {""} for link in links
        ]
        return sum(map(len, names)) == len(set().union(*names))

    def _threads(
        self, links: Sequence[_Link], chosen: tuple[tuple[int, int], ...], serials: tuple[int, ...]
    ) -> tuple[int, ...] | None:
        """Return the serial number of a thread for each link; all threads could run at the same
        time. None if there are no such threads."""
        if len(chosen) == len(links):
            return serials
        for point in links[len(chosen)].order.observed_in:
            self._steps += 1
            if not all(
                self._happens_before.are_concurrent(point, chosen_point) for chosen_point in chosen
            ):
                continue
            result = self._threads(links, (*chosen, point), (*serials, point[0]))
            if result is not None or self._steps > self._limit:
                return result
        return None

    # ---- doubts ----

    def _doubts(
        self, links: Sequence[_Link], serials: Sequence[int], by_class: bool
    ) -> dict[str, Confidence]:
        doubts: dict[str, Confidence] = {}
        if by_class:
            doubts["the cycle has different locks of these classes, not the same locks"] = (
                Confidence.LOW
            )
        for waiter, holder in _pairs(links):
            if waiter.order.shared and holder.held.shared:
                doubts["a reader waits for another reader only while a writer waits"] = (
                    Confidence.MEDIUM
                )
        if any(link.order.is_truncated for link in links):
            doubts["a thread held more locks than are recorded: one may exclude the others"] = (
                Confidence.MEDIUM
            )
        if any(serial not in self._lives for serial in serials):
            doubts["it is not known when a thread was created and joined"] = Confidence.LOW
        return doubts

    # ---- results ----

    def _signature(self, combination: _Combination) -> Hashable:
        """Return a value that is the same for cycles of other locks by the same code."""
        parts = [
            (self._facts[link.held.lock].class_name or link.held.lock, link.order.stack)
            for link in combination.links
        ]
        return frozenset(parts)

    def _cycle(self, ways: Sequence[_Combination], are_all: bool, by_class: bool) -> OrderCycle:
        best = ways[0]
        classes = [self._facts[link.held.lock].class_name for link in best.links]
        return OrderCycle(
            locks=tuple(link.held.lock for link in best.links),
            edges=self._edges(best),
            confidence=best.confidence,
            why="; ".join(best.doubts),
            classes=tuple(classes) if by_class else (),
            ways=tuple(
                OrderWay(
                    edges=self._edges(way), confidence=way.confidence, why="; ".join(way.doubts)
                )
                for way in ways[1:]
            ),
            ways_left_out=not are_all,
        )

    def _edges(self, combination: _Combination) -> tuple[OrderEdge, ...]:
        return tuple(
            OrderEdge(
                from_=link.held.lock,
                to=link.order.lock,
                tid=self._lives[serial].tid if serial in self._lives else 0,
                stack=link.order.stack,
                site=link.held.site,
                shared=link.order.shared,
                from_shared=link.held.shared,
            )
            for link, serial in zip(combination.links, combination.serials, strict=True)
        )


def _group_by_stack(links: Iterable[_Link]) -> list[list[_Link]]:
    """Return the links in groups of the same stack and call site."""
    groups: dict[tuple[int, int], list[_Link]] = {}
    for link in links:
        groups.setdefault((link.order.stack, link.held.site), []).append(link)
    return list(groups.values())


def _exclude_each_other(order: ObservedOrder, other: ObservedOrder) -> bool:
    """Return whether two threads hold a common lock, so that they cannot both do so."""
    return any(
        mine.instance == theirs.instance and not (mine.shared and theirs.shared)
        for mine in order.held
        for theirs in other.held
    )


def _is_mixed(links: Sequence[_Link]) -> bool:
    """Return whether a requested lock differs from the held lock of the same class."""
    return any(link.order.instance != other.held.instance for link, other in _pairs(links))


def _pairs(cycle: Sequence[Item]) -> Iterator[tuple[Item, Item]]:
    """Yield each item with the next one, and the last with the first."""
    return zip(cycle, (*cycle[1:], cycle[0]), strict=True)


def _path(came_from: Mapping[_Node, _Node], first: _Node, last: _Node) -> Sequence[_Node]:
    path = [last]
    while path[-1] != first:
        path.append(came_from[path[-1]])
    return path[::-1]
