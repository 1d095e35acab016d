"""Who waits for whom: the wait-for graph over mutexes, rwlocks and the program's own locks.

An edge says that a thread cannot go on before another one releases a lock, or before a writer that
waits has had it, where such a writer goes first. Only what the holders
themselves list as held counts: the holder that a waiter saw when it began to wait may have released
the lock since. But a list may be stale (a mutex destroyed while held, its address used again), so
what the waiter saw must not contradict it. A wait that gives up by itself blocks nobody for good
and makes no edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from locktop.collector.model import Held, Kind, Lock, Thread, Wait

KINDS = frozenset({Kind.MUTEX, Kind.RWLOCK, Kind.CUSTOM})
#: Threads are read one after the other, so how long two of them have waited compares only so well.
_CLEARLY_S = 0.1
_MOST_WRITERS = 8


@dataclass(frozen=True, slots=True)
class Edge:
    """``tid`` waits for ``lock``, which ``holder`` has (``behind``: which it is about to have).
    Equal in two looks when it is one wait."""

    tid: int
    seq: int  # of the wait
    lock: int  # id
    holder: int  # tid
    behind: bool = False
    stack: int = field(default=0, compare=False)
    site: int = field(default=0, compare=False)  # where the holder took it
    for_s: float = field(default=0.0, compare=False)
    may_give_up: bool = field(default=False, compare=False)  # the program does not say


def edges(threads: Sequence[Thread], locks: Mapping[int, Lock]) -> frozenset[Edge]:
    """Return the edges among living threads."""
    waiting = {
        thread.tid: wait
        for thread in threads
        if thread.alive and (wait := thread.waiting_for) is not None and _counts(wait)
    }
    held = _held_by_lock(threads, {wait.lock for wait in waiting.values()})
    return frozenset(_behind_writers(waiting, locks)) | frozenset(
        _edge(tid, wait, holder, entry)
        for tid, wait in waiting.items()
        for holder, entry in _believed(
            tid, wait, held.get(wait.lock, []), waiting, locks.get(wait.lock)
        )
        if _blocks(tid, wait, holder, entry, locks.get(wait.lock))
    )


def _held_by_lock(threads: Sequence[Thread], wanted: set[int]) -> dict[int, list[tuple[int, Held]]]:
    held: dict[int, list[tuple[int, Held]]] = {}
    if not wanted:
        return held
    for thread in threads:
        for entry in thread.holds:
            if entry.lock in wanted and thread.alive:
                held.setdefault(entry.lock, []).append((thread.tid, entry))
    return held


def _believed(
    tid: int,
    wait: Wait,
    listed: list[tuple[int, Held]],
    waiting: Mapping[int, Wait],
    lock: Lock | None,
) -> list[tuple[int, Held]]:
    """Return the entries of the held lists that fit what the waiter saw."""
    if lock is not None and lock.foreign_releases:
        # Each release by another thread left an entry behind. Who lists what it waits for then
        # waits for such a release.
        return [one for one in listed if one[0] == wait.holder_seen != tid]
    owners = {holder for holder, entry in listed if not entry.shared}
    return [
        (holder, entry)
        for holder, entry in listed
        if entry.shared or _is_owner(tid, wait, holder, owners, waiting.get(holder))
    ]


def _is_owner(tid: int, wait: Wait, holder: int, owners: set[int], its_wait: Wait | None) -> bool:
    """A lock has one owner. Whoever has waited for longer than this thread took it before, so this
    thread saw it as the owner; so did a thread that waits for what it has itself."""
    if len(owners) > 1 or holder == tid:
        return wait.holder_seen == holder
    if its_wait is not None and its_wait.for_s > wait.for_s + _CLEARLY_S:
        return wait.holder_seen in (0, holder)
    return True


def _behind_writers(waiting: Mapping[int, Wait], locks: Mapping[int, Lock]) -> Iterator[Edge]:
    """A reader of a lock whose writers go first waits for those that wait already. One that came
    later is not what stopped it; of two that have just come nobody knows who was first."""
    readers = [
        (tid, wait)
        for tid, wait in waiting.items()
        if wait.shared and wait.for_s > _CLEARLY_S and _has_writers_first(wait, locks)
    ]
    writers = _waiting_writers(waiting, {wait.lock for _, wait in readers})
    for tid, wait in readers:
        for for_s, writer in writers.get(wait.lock, ()):
            if for_s + _CLEARLY_S > wait.for_s:
                yield Edge(tid, wait.seq, wait.lock, writer, True, wait.stack, 0, wait.for_s)


def _has_writers_first(wait: Wait, locks: Mapping[int, Lock]) -> bool:
    lock = locks.get(wait.lock)
    return lock is not None and lock.writers_first


def _waiting_writers(
    waiting: Mapping[int, Wait], wanted: set[int]
) -> dict[int, list[tuple[float, int]]]:
    """Return by lock how long which writers have waited: the longest first, and only some, for
    all of them wait for the same holders."""
    writers: dict[int, list[tuple[float, int]]] = {lock: [] for lock in wanted}
    for tid, wait in waiting.items():
        if wait.lock in wanted and not wait.shared and wait.for_s > _CLEARLY_S:
            writers[wait.lock].append((wait.for_s, tid))
    return {lock: sorted(found, reverse=True)[:_MOST_WRITERS] for lock, found in writers.items()}


def _counts(wait: Wait) -> bool:
    return wait.kind in KINDS and not wait.timed and wait.lock != 0  # 0 stands for many


def _blocks(tid: int, wait: Wait, holder: int, entry: Held, lock: Lock | None) -> bool:
    if wait.shared and entry.shared:
        return False  # readers do not exclude each other
    return not (holder == tid and lock is not None and lock.recursive)


def _edge(tid: int, wait: Wait, holder: int, entry: Held) -> Edge:
    own = wait.kind is Kind.CUSTOM
    return Edge(tid, wait.seq, wait.lock, holder, False, wait.stack, entry.site, wait.for_s, own)
