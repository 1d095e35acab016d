"""Potential deadlocks: cycles in the order in which locks were taken (after iGoodlock, Joshi 2009).

An ``Order`` says that a lock was asked for while others were held. A cycle of them can come about
only if each is another thread's, if these threads could have been there at once (none was created
after or joined before another one's part), if no two of them held one lock besides, which would
have kept them apart, and if each waits for what the next one's hold denies it. Whatever is not
known lowers the confidence, and is said; where something tells against a cycle, it is none. Nor is
one told, only counted, of which it is not known that its locks are the same ones throughout.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from locktop.collector.model import Confidence, OrderCycle, OrderEdge

_MAX_CYCLES = 32
_MAX_OF_CLASSES = 16
#: Shorter ones are all looked for; of longer ones the shortest through each lock.
_SHORT = 4
#: What a look may take, in steps of a search.
_MAX_STEPS = 100_000
#: Ways to make one cycle of locks out of orders.
_MAX_WAYS = 500

#: A lock in one of its lives.
Instance = tuple[int, int]
_Node = Hashable
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HeldThen:
    """A lock that was held when another one was asked for."""

    lock: int  # id
    life: int
    shared: bool  # for reading
    site: int  # where it had been taken: return address
    marked: bool = False  # whatever has its id and life is this lock

    @property
    def instance(self) -> Instance:
        """The lock in this life."""
        return self.lock, self.life


@dataclass(frozen=True, slots=True)
class Order:
    """A lock was asked for while others were held."""

    epoch: int  # joins may be unknown between two
    lock: int  # id
    life: int
    shared: bool  # wanted for reading
    cut: bool  # more were held than are named
    stack: int
    held: tuple[HeldThen, ...]
    seen: tuple[tuple[int, int], ...]  # by whom, when: a thread's birth, a segment of its life
    marked: bool = False  # as HeldThen.marked, of the lock that was asked for

    @property
    def instance(self) -> Instance:
        """The lock that was asked for, in this life."""
        return self.lock, self.life


@dataclass(frozen=True, slots=True)
class Life:
    """A thread's beginning and end. Threads are named by their birth, 0 unknown."""

    tid: int
    creator: int
    created_in: int  # the creator's segment that ended with it
    joiner: int
    joined_in: int  # the joiner's segment that began with it


@dataclass(frozen=True, slots=True)
class About:
    """What is known of a lock besides."""

    lasts: bool = True  # nothing else can have lain at its address in this life
    writers_first: bool = False  # readers queue behind a writer that waits
    handed_over: bool = False  # given back by threads that do not hold it: who has it is not known
    class_name: str = ""  # of the class that it is in, see lock_classes.py


@dataclass(frozen=True, slots=True)
class Found:
    """The potential deadlocks among some orders."""

    cycles: tuple[OrderCycle, ...] = ()  # the surest first, of these the shortest
    unproven: int = 0  # how many more there are if what has one address is one lock


def find(orders: Sequence[Order], lives: Mapping[int, Life], about: Mapping[int, About]) -> Found:
    """Return the potential deadlocks. ``lives`` is by birth, ``about`` by lock id; a lock that is
    not in it counts for nothing."""
    search = _Search(lives, about)
    usable = [order for order in orders if search.is_usable(order)]
    links = [_Link(order, held) for order in usable for held in order.held]
    proven = [link for link in links if search.is_proven(link)]
    found = list(islice(search.cycles(proven), _MAX_CYCLES))
    if any(one.class_name for one in about.values()):
        of_classes = [link for link in links if search.is_proven(link, by_class=True)]
        found += islice(search.cycles(of_classes, by_class=True), _MAX_OF_CLASSES)
    rank = list(Confidence)
    found.sort(key=lambda cycle: (rank.index(cycle.confidence), len(cycle.edges)))
    more = islice(search.cycles(links), _MAX_CYCLES) if len(proven) < len(links) else ()
    return Found(tuple(found), sum(1 for _ in more))


def in_cycles(orders: Sequence[Order]) -> frozenset[int]:
    """Return the ids of the locks that are part of any cycle, possible or not."""
    links: dict[_Node, set[_Node]] = {}
    for order in orders:
        for held in order.held:
            links.setdefault((order.epoch, held.instance), set()).add((order.epoch, order.instance))
    return frozenset(node[1][0] for part in _components(links) for node in part)  # type: ignore[index]


@dataclass(frozen=True, slots=True)
class _Link:
    """One order, and which of the locks held then is meant."""

    order: Order
    held: HeldThen


@dataclass(slots=True)
class _Way:
    """A cycle made of certain orders, by certain threads."""

    links: tuple[_Link, ...]
    births: tuple[int, ...]
    doubts: dict[str, Confidence] = field(default_factory=dict)

    @property
    def confidence(self) -> Confidence:
        rank = list(Confidence)
        found = sorted((rank.index(one) for one in self.doubts.values()), reverse=True)
        return rank[found[0]] if found else Confidence.HIGH


class _Search:
    def __init__(self, lives: Mapping[int, Life], about: Mapping[int, About]) -> None:
        self._happens_before = _Lineage(lives)
        self._lives = lives
        self._about = about
        self._steps = 0
        self._told: set[Hashable] = set()

    def is_usable(self, order: Order) -> bool:
        """Whether all its locks are known, and held by whom they are said to be."""
        locks = [order.lock, *(held.lock for held in order.held)]
        return all(lock in self._about and not self._about[lock].handed_over for lock in locks)

    def is_proven(self, link: _Link, by_class: bool = False) -> bool:
        """Whether it is known which locks these are; ``by_class``: or of which class."""
        order, held = link.order, link.held
        return all(
            marked or self._about[lock].lasts or (by_class and self._about[lock].class_name)
            for lock, marked in ((order.lock, order.marked), (held.lock, held.marked))
        )

    # ---- cycles of locks ----

    def cycles(self, links: Iterable[_Link], by_class: bool = False) -> Iterator[OrderCycle]:
        """Return those that were not returned yet, the shortest first. ``by_class``: of locks of
        which one stands for all of its class, as far as they are no cycles of locks."""
        graph: dict[_Node, dict[_Node, list[_Link]]] = {}
        for link in links:
            from_ = self._node(link.order.epoch, link.held.instance, by_class)
            to = self._node(link.order.epoch, link.order.instance, by_class)
            if from_ != to:
                graph.setdefault(from_, {}).setdefault(to, []).append(link)
        self._steps = 0
        for nodes in self._rings(graph):
            way = self._best_way([graph[a][b] for a, b in _pairs(nodes)], by_class)
            if way is not None and (sign := self._sign(way)) not in self._told:
                self._told.add(sign)
                yield self._cycle(way, by_class)

    def _node(self, epoch: int, instance: Instance, by_class: bool) -> _Node:
        name = self._about[instance[0]].class_name if by_class else ""
        return (epoch, name) if name else (epoch, instance)

    def _rings(self, graph: Mapping[_Node, Mapping[_Node, object]]) -> Iterator[Sequence[_Node]]:
        parts = _components(graph)
        for length in range(2, _SHORT + 1):
            for part in parts:
                yield from self._of_length(graph, part, length)
        longer = (self._shortest(graph, part, at) for part in parts for at in range(len(part)))
        yield from sorted((ring for ring in longer if len(ring) > _SHORT), key=len)

    def _of_length(
        self, graph: Mapping[_Node, Mapping[_Node, object]], part: Sequence[_Node], length: int
    ) -> Iterator[Sequence[_Node]]:
        """Each once: from the node of it that stands first in ``part``."""
        place = {node: at for at, node in enumerate(part)}
        for first in part:
            ways: list[list[_Node]] = [[first]]
            while ways:
                way = ways.pop()
                self._steps += 1
                if self._steps > _MAX_STEPS:
                    return
                following = graph[way[-1]]
                if len(way) == length:
                    if first in following:
                        yield way
                    continue
                ways += (
                    [*way, node]
                    for node in following
                    if place.get(node, -1) > place[first] and node not in way
                )

    def _shortest(
        self, graph: Mapping[_Node, Mapping[_Node, object]], part: Sequence[_Node], at: int
    ) -> Sequence[_Node]:
        """Through one node, and none that stands before it; () if there is none."""
        first, allowed = part[at], set(part[at:])
        came: dict[_Node, _Node] = {}
        row: list[_Node] = [first]
        while row and self._steps <= _MAX_STEPS:
            following: list[_Node] = []
            for node in row:
                self._steps += 1
                if first in graph[node]:
                    return _path(came, first, node)
                for other in graph[node]:
                    if other in allowed and other not in came:
                        came[other] = node
                        following.append(other)
            row = following
        return ()

    # ---- ways to make one of them ----

    def _best_way(self, links: Sequence[Sequence[_Link]], by_class: bool) -> _Way | None:
        best: _Way | None = None
        rank = list(Confidence)
        for chosen in islice(self._ways(links, ()), _MAX_WAYS):
            if by_class and not (_is_mixed(chosen) and self._are_of_different_classes(chosen)):
                continue
            births = self._threads(chosen, (), ())
            if births is None:
                continue
            way = _Way(chosen, births, self._doubts(chosen, births, by_class))
            if best is None or rank.index(way.confidence) < rank.index(best.confidence):
                best = way
            if best.confidence is Confidence.HIGH:
                break
        return best

    def _ways(
        self, links: Sequence[Sequence[_Link]], chosen: tuple[_Link, ...]
    ) -> Iterator[tuple[_Link, ...]]:
        if len(chosen) == len(links):
            if self._blocks(chosen[-1], chosen[0]):
                yield chosen
            return
        for link in links[len(chosen)]:
            self._steps += 1
            if self._steps > _MAX_STEPS:
                return
            if chosen and not self._blocks(chosen[-1], link):
                continue
            if not any(_are_kept_apart(link.order, other.order) for other in chosen):
                yield from self._ways(links, (*chosen, link))

    def _blocks(self, waiter: _Link, holder: _Link) -> bool:
        """Readers do not wait for readers, but perhaps for a writer between them."""
        both_read = waiter.order.shared and holder.held.shared
        return not both_read or self._about[holder.held.lock].writers_first

    def _are_of_different_classes(self, links: Sequence[_Link]) -> bool:
        """Whether no two hold locks of one class: one of them could keep the threads apart."""
        names = [
            {self._about[held.lock].class_name for held in link.order.held} - {""} for link in links
        ]
        return sum(map(len, names)) == len(set().union(*names))

    def _threads(
        self, links: Sequence[_Link], chosen: tuple[tuple[int, int], ...], births: tuple[int, ...]
    ) -> tuple[int, ...] | None:
        """Return a thread for each, all different, that could have been there at once."""
        if len(chosen) == len(links):
            return births
        for who in links[len(chosen)].order.seen:
            self._steps += 1
            if not all(self._happens_before.at_once(who, one) for one in chosen):
                continue
            found = self._threads(links, (*chosen, who), (*births, who[0]))
            if found is not None or self._steps > _MAX_STEPS:
                return found
        return None

    # ---- what is not known ----

    def _doubts(
        self, links: Sequence[_Link], births: Sequence[int], by_class: bool
    ) -> dict[str, Confidence]:
        doubts: dict[str, Confidence] = {}
        if by_class:
            doubts["of different locks of these classes, not of the same ones"] = Confidence.LOW
        for waiter, holder in _pairs(links):
            if waiter.order.shared and holder.held.shared:
                doubts["a reader waits for another one only while a writer waits too"] = (
                    Confidence.MEDIUM
                )
        if any(link.order.cut for link in links):
            doubts["more locks were held than are kept: one of them may keep the threads apart"] = (
                Confidence.MEDIUM
            )
        if any(birth not in self._lives for birth in births):
            doubts["when a thread was created and joined is not known"] = Confidence.LOW
        return doubts

    # ---- what is told ----

    def _sign(self, way: _Way) -> Hashable:
        """The same for cycles of other locks that come of the same code."""
        signs = [
            (self._about[link.held.lock].class_name or link.held.lock, link.order.stack)
            for link in way.links
        ]
        return frozenset(signs)

    def _cycle(self, way: _Way, by_class: bool) -> OrderCycle:
        classes = [self._about[link.held.lock].class_name for link in way.links]
        return OrderCycle(
            locks=tuple(link.held.lock for link in way.links),
            edges=tuple(
                OrderEdge(
                    from_=link.held.lock,
                    to=link.order.lock,
                    tid=self._lives[birth].tid if birth in self._lives else 0,
                    stack=link.order.stack,
                    site=link.held.site,
                    shared=link.order.shared,
                    from_shared=link.held.shared,
                )
                for link, birth in zip(way.links, way.births, strict=True)
            ),
            confidence=way.confidence,
            why="; ".join(way.doubts),
            classes=tuple(classes) if by_class else (),
        )


def _are_kept_apart(one: Order, other: Order) -> bool:
    """Whether both hold one lock, so that they cannot both be there."""
    return any(
        mine.instance == theirs.instance and not (mine.shared and theirs.shared)
        for mine in one.held
        for theirs in other.held
    )


def _is_mixed(links: Sequence[_Link]) -> bool:
    """Whether a lock that is waited for is another one than the one of its class that is held."""
    return any(one.order.instance != other.held.instance for one, other in _pairs(links))


def _pairs(ring: Sequence[T]) -> Iterator[tuple[T, T]]:
    """Each with the next one, the last with the first."""
    return zip(ring, (*ring[1:], ring[0]), strict=True)


def _path(came: Mapping[_Node, _Node], first: _Node, last: _Node) -> Sequence[_Node]:
    path = [last]
    while path[-1] != first:
        path.append(came[path[-1]])
    return path[::-1]


class _Lineage:
    """What happened before what, as far as threads were created and joined."""

    def __init__(self, lives: Mapping[int, Life]) -> None:
        self._lives = lives
        self._children: dict[int, list[tuple[int, int]]] = {}
        for birth, life in lives.items():
            self._children.setdefault(life.creator, []).append((life.created_in, birth))
        self._reached: dict[tuple[int, int], dict[int, int]] = {}

    def at_once(self, one: tuple[int, int], other: tuple[int, int]) -> bool:
        """Whether two threads did something, each in a segment of its life, that was not one after
        the other; what one thread alone does is."""
        return not self._before(one, other) and not self._before(other, one)

    def _before(self, one: tuple[int, int], other: tuple[int, int]) -> bool:
        reached = self._reached.get(one)
        if reached is None:
            reached = self._reached[one] = self._reach(one)
        birth, segment = other
        return birth in reached and reached[birth] <= segment

    def _reach(self, start: tuple[int, int]) -> dict[int, int]:
        """Return by thread the first segment that comes after ``start``."""
        reached: dict[int, int] = {}
        ahead = [start]
        while ahead:
            birth, segment = ahead.pop()
            if reached.get(birth, segment + 1) <= segment:
                continue
            reached[birth] = segment
            ahead += (
                (child, 0) for last, child in self._children.get(birth, ()) if last >= segment
            )
            life = self._lives.get(birth)
            if life is not None and life.joiner:
                ahead.append((life.joiner, life.joined_in))
        return reached


def _components(graph: Mapping[_Node, Iterable[_Node]]) -> list[list[_Node]]:
    """Return the strongly connected parts of more than one node (Tarjan 1972)."""
    index: dict[_Node, int] = {}
    low: dict[_Node, int] = {}
    stack: list[_Node] = []
    on_stack: set[_Node] = set()
    found: list[list[_Node]] = []
    for root in graph:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        work: list[tuple[_Node, Iterator[_Node]]] = [(root, iter(graph[root]))]
        while work:
            node, following = work[-1]
            for other in following:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(graph.get(other, ()))))
                    break
                if other in on_stack:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = _taken(stack, on_stack, node)
                    if len(part) > 1:
                        found.append(part)
    return found


def _taken(stack: list[_Node], on_stack: set[_Node], down_to: _Node) -> list[_Node]:
    part: list[_Node] = []
    while not part or part[-1] != down_to:
        part.append(stack.pop())
        on_stack.discard(part[-1])
    return part[::-1]
