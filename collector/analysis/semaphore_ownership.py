"""Who has a semaphore that is used as a lock: who got it and has not posted it since.

Nobody owns a semaphore, but of one with a single unit that only those post who got it, the counts
of the threads tell. Each of them is exact at the moment it is read, so whoever is one ahead has the
unit. Where others lay at the address before, one that was destroyed while a thread had it left that
thread one ahead, and with the present holder that makes two; but threads are read one after the
other, and one that changes hands meanwhile may be missed. What two readings show alike was so in
between, for all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from locktop.collector.model import Draft, Held, Lock, Thread


class Done(Protocol):
    """What a thread did at a lock; both kinds of Use are that."""

    @property
    def lock(self) -> int:
        """Its id."""

    @property
    def acquisitions(self) -> int:
        """How often it got it."""

    @property
    def signals(self) -> int:
        """How often it posted it."""


#: Reads once more, by tid, what each thread did.
Again = Callable[[], Mapping[int, Iterable[Done]]]


def annotate(snapshot: Draft, again: Again) -> None:
    """Fill in the holders of semaphores that others wait for, where they are known.

    A holder appears in the lock, in the waits, and among what its thread holds.
    """
    asked = {lock.id: lock for lock in snapshot.locks if _may_be_known(lock)}
    if not asked or not snapshot.complete:
        return
    holders = dict(_holders(snapshot.threads, asked))
    unsure = {lock for lock in holders if asked[lock].generation}
    if unsure:
        before = _done({thread.tid: thread.uses or () for thread in snapshot.threads}, unsure)
        now = _done(again(), unsure)
        for lock in unsure:
            if before[lock] != now[lock]:
                del holders[lock]
    if not holders:
        return
    has: dict[int, list[Held]] = {}
    for lock, holder in holders.items():
        has.setdefault(holder.tid, []).append(Held(lock, 0, None))
    snapshot.threads = tuple(
        [_in_wait(_having(thread, has.get(thread.tid)), holders) for thread in snapshot.threads]
    )
    snapshot.locks = tuple(
        [
            replace(lock, holders=(holders[lock.id].tid,)) if lock.id in holders else lock
            for lock in snapshot.locks
        ]
    )


def _done(
    uses: Mapping[int, Iterable[Done]], locks: Iterable[int]
) -> dict[int, set[tuple[int, int, int]]]:
    """By lock what each thread did at it."""
    found: dict[int, set[tuple[int, int, int]]] = {lock: set() for lock in locks}
    for tid, done in uses.items():
        for use in done:
            if use.lock in found:
                found[use.lock].add((tid, use.acquisitions, use.signals))
    return found


def _may_be_known(lock: Lock) -> bool:
    return (
        lock.used_as_lock
        and bool(lock.waiters)
        and lock.first_value == 1
        and not lock.foreign_releases
        and lock.acquisitions - lock.signals == 1  # of threads that ended, too
    )


def _holders(threads: Iterable[Thread], asked: Mapping[int, Lock]) -> Iterable[tuple[int, Thread]]:
    """Yield locks, by id, and who has them."""
    ahead: dict[int, dict[int, int]] = {lock: {} for lock in asked}
    by_tid: dict[int, Thread] = {}
    for thread in threads:
        if thread.uses is None:
            return  # it may have got any of them
        if thread.waiting_for is not None and thread.waiting_for.pshared:
            ahead.pop(thread.waiting_for.lock, None)  # what other processes do is not counted
        for use in thread.uses:
            if use.lock in ahead and use.acquisitions != use.signals:
                ahead[use.lock][thread.tid] = use.acquisitions - use.signals
                by_tid[thread.tid] = thread
    for lock, units in ahead.items():
        if list(units.values()) == [1]:
            holder = by_tid[next(iter(units))]
            wait = holder.waiting_for
            # Who waits for what it has itself waits for a signal.
            if wait is None or wait.lock != lock:
                yield lock, holder


def _having(thread: Thread, locks: Sequence[Held] | None) -> Thread:
    return replace(thread, holds=(*thread.holds, *locks)) if locks else thread


def _in_wait(thread: Thread, holders: Mapping[int, Thread]) -> Thread:
    wait = thread.waiting_for
    if wait is None or wait.lock not in holders or not holders[wait.lock].alive:
        return thread
    return replace(thread, waiting_for=replace(wait, holders=(holders[wait.lock].tid,)))
