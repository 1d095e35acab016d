"""Blame chains: which holders cause a wait if the holder of the lock waits itself.

A holder may wait for a second lock while other threads wait for the holder. Then its blame goes to
the holders of the second lock, in the shares of their blame. If several threads held the second
lock, the result is an estimate. These are then the shares of all waits for that lock, not of this
holder's wait alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from locktop.collector.model import Blame, Lock

#: The maximum length of a chain, because each link may be an estimate.
_MAX_LENGTH = 8


class BlameRoot(Struct, frozen=True):
    """The end of a chain: a holder that did not wait for a held lock, and the lock it held."""

    lock: int  # id
    tid: int  # as in Blame
    site: int
    wait_s: float


def roots(lock: Lock, locks: Mapping[int, Lock]) -> tuple[BlameRoot, ...]:
    """Return the holders at the ends of a lock's chains, the longest wait first.

    Args:
        lock: The lock. The waits of its roots add up to the waits in ``lock.blame``.
        locks: All locks by id.
    """
    sums: dict[tuple[int, int, int], float] = {}
    _follow(lock, 1.0, locks, (), sums)
    found = [BlameRoot(id_, tid, site, wait_s) for (id_, tid, site), wait_s in sums.items()]
    return tuple(sorted(found, key=lambda root: (-root.wait_s, root.lock, root.tid, root.site)))


def is_chained(lock: Lock, locks: Mapping[int, Lock]) -> bool:
    """Return whether a holder of the lock waited for another held lock."""
    return any(_next(one, locks) is not None for one in lock.blame)


def _follow(
    lock: Lock,
    share: float,
    locks: Mapping[int, Lock],
    path: tuple[int, ...],
    sums: dict[tuple[int, int, int], float],
) -> None:
    path = (*path, lock.id)
    for one in lock.blame:
        behind = _next(one, locks)
        if behind is None or behind.id in path or len(path) == _MAX_LENGTH:
            key = lock.id, one.tid, one.site
            sums[key] = sums.get(key, 0.0) + one.wait_s * share
        else:
            whole = sum(other.wait_s for other in behind.blame)
            _follow(behind, share * one.wait_s / whole, locks, path, sums)


def _next(one: Blame, locks: Mapping[int, Lock]) -> Lock | None:
    """Return the lock that a holder waited for, None if that lock has no blame."""
    found = locks.get(one.through) if one.through else None
    return found if found and sum(other.wait_s for other in found.blame) > 0 else None
