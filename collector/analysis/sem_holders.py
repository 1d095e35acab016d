"""Who has a semaphore that is used as a lock: who got it and has not posted it since.

Nobody owns a semaphore, but of one with a single unit that only those post who got it, the counts
of the threads tell. Each of them is exact at the moment it is read, so whoever is one ahead has the
unit. That holds where another semaphore lay at the address before, too: one that was destroyed
while a thread had it left that thread one ahead, and with the present holder that would be two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from locktop.collector.model import Held, Lock, Snapshot, Thread


def told(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with the holders of semaphores that others wait for, where they are
    known: in the locks, in the waits and among what threads hold."""
    asked = {lock.id: lock for lock in snapshot.locks if _may_be_known(lock)}
    if not asked or not snapshot.complete:
        return snapshot
    holders = dict(_holders(snapshot.threads, asked))
    if not holders:
        return snapshot
    has: dict[int, list[Held]] = {}
    for lock, holder in holders.items():
        has.setdefault(holder.tid, []).append(Held(lock, 0, None))
    threads = tuple(
        [_in_wait(_having(thread, has.get(thread.tid)), holders) for thread in snapshot.threads]
    )
    locks = tuple(
        [
            lock._replace(holders=(holders[lock.id].tid,)) if lock.id in holders else lock
            for lock in snapshot.locks
        ]
    )
    return replace(snapshot, threads=threads, locks=locks)


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
    return thread._replace(holds=(*thread.holds, *locks)) if locks else thread


def _in_wait(thread: Thread, holders: Mapping[int, Thread]) -> Thread:
    wait = thread.waiting_for
    if wait is None or wait.lock not in holders or not holders[wait.lock].alive:
        return thread
    return thread._replace(waiting_for=wait._replace(holders=(holders[wait.lock].tid,)))
