"""Who stands at the end of a chain: whom a lock was waited for, its holder having waited itself.

What a holder is charged with while it waited for another lock goes on to those whom that other lock
was waited for, in the same shares. Where several had it, that is an estimate: the shares are those
of all waits for the other lock, not of this holder's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from locktop.collector.model import Blame, Lock

#: A chain goes no further: each link may be an estimate.
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Root:
    """A holder that did not wait for a lock somebody held, and the lock it held."""

    lock: int  # id
    tid: int  # as in Blame
    site: int
    wait_s: float


def roots(lock: Lock, locks: Mapping[int, Lock]) -> tuple[Root, ...]:
    """Return whom ``lock`` was waited for at the ends of the chains, most wait first; the shares
    add up to those of ``lock.blame``. ``locks`` is by id."""
    sums: dict[tuple[int, int, int], float] = {}
    _follow(lock, 1.0, locks, (), sums)
    found = [Root(id_, tid, site, wait_s) for (id_, tid, site), wait_s in sums.items()]
    return tuple(sorted(found, key=lambda root: (-root.wait_s, root.lock, root.tid, root.site)))


def is_chained(lock: Lock, locks: Mapping[int, Lock]) -> bool:
    """Tell whether a holder of the lock waited itself for one that somebody held."""
    return any(_next(one, locks) is not None for one in lock.blame)


def _follow(
    lock: Lock,
    share: float,
    locks: Mapping[int, Lock],
    on_the_way: tuple[int, ...],
    sums: dict[tuple[int, int, int], float],
) -> None:
    way = (*on_the_way, lock.id)
    for one in lock.blame:
        behind = _next(one, locks)
        if behind is None or behind.id in way or len(way) == _DEEPEST:
            key = lock.id, one.tid, one.site
            sums[key] = sums.get(key, 0.0) + one.wait_s * share
        else:
            whole = sum(other.wait_s for other in behind.blame)
            _follow(behind, share * one.wait_s / whole, locks, way, sums)


def _next(one: Blame, locks: Mapping[int, Lock]) -> Lock | None:
    """The lock that the holder waited for, if it is known for whom."""
    found = locks.get(one.through) if one.through else None
    return found if found and sum(other.wait_s for other in found.blame) > 0 else None
