"""Who has a semaphore that is used as a lock: who got it and has not posted it since.

Nobody owns a semaphore, but of one with a single unit that only those post who got it, the counts
of the threads tell. Each of them is exact at the moment it is read, so whoever is one ahead has the
unit. That holds where another semaphore lay at the address before, too: one that was destroyed
while a thread had it left that thread one ahead, and with the present holder that would be two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from locktop.collector.model import Held, Lock, Snapshot, Thread


def told(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with the holders of semaphores that others wait for, where they are
    known: in the locks, in the waits and among what threads hold."""
    asked = {lock.id: lock for lock in snapshot.locks if _may_be_known(lock)}
    if not asked or not snapshot.complete:
        return snapshot
    holders = {lock: thread for thread, lock in _holders(snapshot.threads, asked)}
    if not holders:
        return snapshot
    threads = tuple([_with_holders(thread, holders) for thread in snapshot.threads])
    locks = tuple([
        lock._replace(holders=(holders[lock.id].tid,)) if lock.id in holders else lock
        for lock in snapshot.locks
    ])  # fmt: skip
    return replace(snapshot, threads=threads, locks=locks)


def _may_be_known(lock: Lock) -> bool:
    return (
        lock.used_as_lock
        and bool(lock.waiters)
        and lock.first_value == 1
        and not lock.foreign_releases
        and lock.acquisitions - lock.signals == 1  # of threads that ended, too
    )


def _holders(threads: Iterable[Thread], asked: Mapping[int, Lock]) -> Iterable[tuple[Thread, int]]:
    """Yield who has which of the locks."""
    ahead: dict[int, dict[int, int]] = {lock: {} for lock in asked}
    by_tid: dict[int, Thread] = {}
    for thread in threads:
        if thread.uses is None:
            return  # it may have got any of them
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
                yield holder, lock


def _with_holders(thread: Thread, holders: Mapping[int, Thread]) -> Thread:
    wait = thread.waiting_for
    if wait is not None and wait.lock in holders and holders[wait.lock].alive:
        wait = wait._replace(holders=(holders[wait.lock].tid,))
    has = [lock for lock, holder in holders.items() if holder is thread]
    if wait is thread.waiting_for and not has:
        return thread
    held = (*thread.holds, *[Held(lock, 0, None) for lock in has])
    return thread._replace(waiting_for=wait, holds=held)
