"""Blame chains: which holders cause a wait if the holder of the lock waits itself.

A holder may wait for a second lock while other threads wait for the holder. Then its blame goes to
the holders of the second lock, in the shares of their blame. If several threads held the second
lock, the result is an estimate. These are then the shares of all waits for that lock, not of this
holder's wait alone.

A chain ends at a lock that it already has. So a search must know the way to each lock. There may be
as many ways as the graph of locks has paths. But a chain that leaves a strongly connected component
never returns. So all ways to a lock that differ only before its component are one way.

The work is bounded. A chain has at most MAX_LENGTH locks. ``BlameChains`` takes at most MAX_STEPS
steps for one lock and MAX_ALL_STEPS steps in all. At the first arrival at a lock, each of its
holders is a step. At a further arrival, each lock that the holders waited for is a step. At the
limit the chains end where they are, and ``BlameChains.cut`` has the lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct

from locktop.collector.analysis.strong_components import strong_components
from locktop.collector.model import Blame, Lock, further_locks

#: The maximum length of a chain, because each link may be an estimate.
MAX_LENGTH = 8
#: 5,000 locks, of which each holder waited for ten others, took minutes without a limit.
MAX_STEPS = 20_000
MAX_ALL_STEPS = 400_000

#: The last lock of a chain, and the earlier locks of the chain in its component.
_Way = tuple[int, frozenset[int]]


class BlameRoot(Struct, frozen=True):
    """The end of a chain: a holder that did not wait for a held lock, and the lock it held."""

    lock: int  # id
    tid: int  # as in Blame
    site: int
    wait_s: float


class _ChainLink(Struct):
    """The blame of holders that waited for one lock."""

    blame: list[Blame]
    wait_s: float  # the sum


class BlameChains:
    """The blame chains of one snapshot."""

    def __init__(self, locks: Mapping[int, Lock]) -> None:
        """``locks``: all locks by id."""
        self._locks = locks
        self._blame_s: dict[int, float] = {}  # by lock
        self._links: dict[int, dict[int, _ChainLink]] = {}
        self._steps_left = MAX_ALL_STEPS
        #: The ids of the locks whose chains end before their true ends, because of the limits.
        self.cut: set[int] = set()

    def is_chained(self, lock: Lock) -> bool:
        """Return whether a holder of the lock waited for another held lock."""
        return any(lock_ and self._blame_of(lock_) > 0 for lock_ in further_locks(lock.blame))

    def roots(self, lock: Lock) -> tuple[BlameRoot, ...]:
        """Return the holders at the ends of a lock's chains, the longest wait first.

        The waits of the roots add up to the waits in ``lock.blame``.
        """
        steps_left = min(MAX_STEPS, self._steps_left)
        self._steps_left -= steps_left
        ends: dict[tuple[int, int], float] = {}  # shares, by lock and the next lock or 0
        arrived = {lock.id}
        ways: dict[_Way, float] = {(lock.id, frozenset()): 1.0}
        for length in range(1, MAX_LENGTH + 1):
            following: dict[_Way, float] = {}
            # The limit ends the chains with small shares.
            for (id_, earlier), share in sorted(ways.items(), key=lambda item: -item[1]):
                ends[id_, 0] = ends.get((id_, 0), 0.0) + share
                for next_, link in self._links_of(id_).items():
                    way = self._way(id_, earlier, next_) if next_ and length < MAX_LENGTH else None
                    if way is not None and way not in following:
                        steps = self._steps(next_, next_ not in arrived)
                        if steps > steps_left:
                            self.cut.add(lock.id)
                            way = None
                        else:
                            steps_left -= steps
                            arrived.add(next_)
                    if way is not None:
                        part = link.wait_s / self._blame_of(next_)
                        following[way] = following.get(way, 0.0) + share * part
                    elif next_:
                        ends[id_, next_] = ends.get((id_, next_), 0.0) + share
            ways = following
        self._steps_left += steps_left
        return self._roots_at(ends)

    def _roots_at(self, ends: Mapping[tuple[int, int], float]) -> tuple[BlameRoot, ...]:
        sums: dict[tuple[int, int, int], float] = {}
        for (id_, next_), share in ends.items():
            link = self._links_of(id_).get(next_)
            for charge in link.blame if link is not None else ():
                key = id_, charge.tid, charge.site
                sums[key] = sums.get(key, 0.0) + charge.wait_s * share
        roots = [BlameRoot(id_, tid, site, wait_s) for (id_, tid, site), wait_s in sums.items()]
        return tuple(sorted(roots, key=lambda root: (-root.wait_s, root.lock, root.tid, root.site)))

    def _steps(self, id_: int, is_first: bool) -> int:
        """Return the steps that the arrival of a chain at a lock takes."""
        return len(self._locks[id_].blame) if is_first else len(self._links_of(id_))

    def _way(self, from_: int, earlier: frozenset[int], to: int) -> _Way | None:
        """Return the way on to a lock, None if the chain has that lock already."""
        component = self._components.get(from_)
        if component is None or self._components.get(to) != component:
            return (to, frozenset()) if to != from_ else None
        earlier |= {from_}
        return (to, earlier) if to not in earlier else None

    @cached_property
    def _components(self) -> dict[int, int]:
        """The number of the component of each lock that is in a cycle of locks."""
        graph = {id_: self._links_of(id_).keys() - {0} for id_ in self._locks}
        components = enumerate(strong_components(graph))
        return {id_: number for number, component in components for id_ in component}

    def _links_of(self, id_: int) -> dict[int, _ChainLink]:
        """Return the blame of a lock, by the held lock that the holders waited for; 0: by none."""
        links = self._links.get(id_)
        if links is None:
            links = self._links[id_] = {}
            for charge in self._locks[id_].blame:
                next_ = (
                    charge.through if charge.through and self._blame_of(charge.through) > 0 else 0
                )
                link = links.setdefault(next_, _ChainLink([], 0.0))
                link.blame.append(charge)
                link.wait_s += charge.wait_s
        return links

    def _blame_of(self, id_: int) -> float:
        """Return the seconds of a lock's blame, 0 for an unknown lock."""
        blame_s = self._blame_s.get(id_)
        if blame_s is None:
            lock = self._locks.get(id_)
            blame_s = sum(charge.wait_s for charge in lock.blame) if lock is not None else 0.0
            self._blame_s[id_] = blame_s
        return blame_s
