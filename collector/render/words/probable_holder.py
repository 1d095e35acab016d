"""The words about threads that probably hold a lock which names no holder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from locktop.collector.model import Frame, HolderEvidence, Lock
from locktop.collector.render.words import readers
from locktop.collector.render.words.source_location import short_location

#: Before a name where a column has no room for a word.
MARK = "~"
PROBABLY = "probably held by"
_EVIDENCE = "which goes on to release it in"
_LAST = "which got it last and has not released it"


def tids(lock: Lock) -> tuple[int, ...]:
    """Return the threads that probably hold a lock; () if its holder is known."""
    return () if lock.holders else tuple(holder.tid for holder in lock.holders_probable)


def awaited_tids(locks: Iterable[Lock]) -> frozenset[int]:
    """Return the threads that probably hold a lock which others wait for."""
    return frozenset(tid for lock in locks if lock.waiters and not lock.idle for tid in tids(lock))


def evidence(lock: Lock, sites: Mapping[int, Frame]) -> str:
    """Return why the only probable holder is one; "" for several.

    Args:
        lock: the lock.
        sites: Snapshot.sites.
    """
    if len(lock.holders_probable) != 1:
        return ""
    (holder,) = lock.holders_probable
    if holder.evidence is HolderEvidence.WAKER:
        return _LAST
    frame = sites.get(holder.site)
    return f"{_EVIDENCE} {short_location(frame)}" if frame is not None else ""


def phrase(lock: Lock, names: str, sites: Mapping[int, Frame]) -> str:
    """Return "probably held by flusher, which goes on to release it in flush store.rs:41".

    Args:
        lock: a lock with probable holders.
        names: the names of the threads of tids().
        sites: Snapshot.sites.
    """
    why = evidence(lock, sites)
    held = f"held by {counted}, probably" if (counted := readers.phrase(lock)) else PROBABLY
    return f"{held} {names}" + (f", {why}" if why else "")
