"""Semaphores that are used as locks: which semaphores are locks, and which thread owns one.

No thread owns a semaphore. But a program can use a semaphore as a lock. Then some units are free at
first, and a thread posts the semaphore only after the thread got it. ``SemaphoreLocks`` finds such
semaphores, by the counts of each thread. The library counts anew in each life of a semaphore. A
life begins when the program initialises the semaphore. Programs reuse addresses: CPython puts each
``threading.Lock`` on the heap.

``annotate_holders`` finds the holder of such a semaphore with one unit. Each count is exact at the
moment of its reading. So a thread that is one ahead (one acquisition more than posts) has the unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from locktop.collector.model import (
    Contents,
    Deadlock,
    Draft,
    Held,
    Kind,
    Lock,
    TakenUnits,
    Thread,
    UnitTaker,
)

#: Fewer posts do not show that threads post only what they took.
_MIN_POSTS = 16
#: A waiter of this many seconds would have got any unit that a thread posted meanwhile.
_SETTLED_S = 1.0


class RuleVerdict(Protocol):
    """The verdict of an idle rule (analysis/idle/rules.py), as far as it is about semaphores."""

    @property
    def idle(self) -> bool:
        """Whether the wait is for work."""

    @property
    def for_all(self) -> bool:
        """Whether the verdict on one wait for a semaphore holds for its other waits too."""


class SemaphoreLocks:
    """Finds the semaphores that are used as locks, from one scan to the next."""

    def __init__(self) -> None:
        self._generations: dict[int, int] = {}  # of the known locks, by id
        #: The same, of the semaphores that are locks because a rule says so.
        self._by_rule: dict[int, int] = {}

    def observe(self, snapshot: Contents) -> frozenset[int]:
        """Return the ids of the semaphores that are used as locks. A semaphore that a saved
        snapshot names as a lock stays a lock."""
        candidates = {
            lock.id: lock
            for lock in snapshot.locks
            if lock.kind is Kind.SEM
            and lock.wait_s > 0
            and (lock.first_value or lock.used_as_lock or lock.id in self._by_rule)
        }
        as_locks = [lock for lock in candidates.values() if self._is_lock(lock)]
        self._generations = {lock.id: lock.generation for lock in as_locks}
        return frozenset(self._generations)

    def observe_rules(self, snapshot: Contents, rules: Mapping[int, RuleVerdict]) -> frozenset[int]:
        """Apply the verdict of a rule with ``for_all`` on one wait to all waits for that semaphore.
        Other waits may end before the names of their functions are known.

        Args:
            snapshot: The snapshot of the last call of ``observe``.
            rules: By tid, the rules that its waits match.

        Returns:
            The ids of the semaphores that are used as locks.
        """
        waits = [
            (thread.waiting_for, rule)
            for thread in snapshot.threads
            if thread.waiting_for is not None
            and thread.waiting_for.kind is Kind.SEM
            and (rule := rules[thread.tid]).for_all
        ]
        if waits or self._by_rule:
            present = {lock.id: lock.generation for lock in snapshot.locks}
            self._by_rule = {
                id_: generation for id_, generation in self._by_rule.items() if id_ in present
            }
            for wait, rule in waits:
                if rule.idle:
                    self._by_rule.pop(wait.lock, None)
                    self._generations.pop(wait.lock, None)
                elif wait.lock in present:
                    self._by_rule[wait.lock] = self._generations[wait.lock] = present[wait.lock]
        return frozenset(self._generations)

    def _is_lock(self, lock: Lock) -> bool:
        if lock.used_as_lock or self._by_rule.get(lock.id) == lock.generation:
            return True
        was_lock = self._generations.get(lock.id) == lock.generation
        if lock.units_out is None or lock.first_value is None:
            return was_lock
        # A scan reads the threads one after the other, so sums may be a little wrong.
        by_us = was_lock or lock.units_out <= lock.first_value
        return bool(lock.life_signals) and by_us and not lock.foreign_releases


# ---- holders ----


def annotate_holders(snapshot: Draft) -> None:
    """Fill in the holders of the semaphores that are used as locks.

    A holder appears in its lock, in the waits for that lock, and in ``Thread.holds``. A semaphore
    without a waiter has no known holder.

    Args:
        snapshot: A classified draft (``Lock.used_as_lock``).
    """
    candidates = {lock.id: lock for lock in snapshot.locks if _can_have_known_holder(lock)}
    if not candidates or not snapshot.complete:
        return
    holders = dict(_find_holders(snapshot.threads, candidates))
    if not holders:
        return
    held: dict[int, list[Held]] = {}
    for lock, holder in holders.items():
        held.setdefault(holder.tid, []).append(Held(lock=lock, site=0, duration_s=None))
    snapshot.threads = tuple(
        [
            _set_wait_holder(_add_holds(thread, held.get(thread.tid)), holders)
            for thread in snapshot.threads
        ]
    )
    snapshot.locks = tuple(
        [
            replace(lock, holders=(holders[lock.id].tid,)) if lock.id in holders else lock
            for lock in snapshot.locks
        ]
    )


def _can_have_known_holder(lock: Lock) -> bool:
    return (
        lock.used_as_lock
        and bool(lock.waiters)
        and lock.first_value == 1
        and not lock.foreign_releases
        and lock.units_out == 1
    )


def _find_holders(
    threads: Sequence[Thread], candidates: Mapping[int, Lock]
) -> Iterable[tuple[int, Thread]]:
    """Yield the ids of semaphores with their holders."""
    ahead = _units_by_thread(threads, candidates)
    by_tid = {thread.tid: thread for thread in threads} if ahead else {}
    for id_, units in ahead.items():
        if list(units.values()) == [1]:
            holder = by_tid[next(iter(units))]
            wait = holder.waiting_for
            # A thread that waits for a semaphore that it has waits for a signal.
            if wait is None or wait.lock != id_:
                yield id_, holder


def _units_by_thread(
    threads: Iterable[Thread], candidates: Mapping[int, Lock]
) -> dict[int, dict[int, int]]:
    """Return how many units of each semaphore each thread is ahead; 0 is left out."""
    ahead: dict[int, dict[int, int]] = {lock: {} for lock in candidates}
    for thread in threads:
        if thread.uses is None:
            return {}  # this thread may have got any of them
        if thread.waiting_for is not None and thread.waiting_for.pshared:
            ahead.pop(thread.waiting_for.lock, None)  # the counts of other processes are not known
        for use in thread.uses:
            lock = candidates.get(use.lock)
            if lock is None or use.lock not in ahead or not lock.is_of_this_life(use):
                continue
            if use.acquisitions != use.signals:
                ahead[use.lock][thread.tid] = use.acquisitions - use.signals
    return ahead


def unit_holders(snapshot: Contents) -> dict[int, tuple[int, ...]]:
    """Return the holders of the semaphores that are used as locks, by id.

    A semaphore of several units has several holders, such as the threads that have a connection of
    a pool. A semaphore is left out if the threads that live do not account for all of its units.

    Args:
        snapshot: A classified snapshot (``Lock.used_as_lock``).
    """
    candidates = {lock.id: lock for lock in snapshot.locks if _has_no_unit_left(lock)}
    if not candidates or not snapshot.complete:
        return {}
    units_by_lock = _units_by_thread(snapshot.threads, candidates)
    for thread in snapshot.threads:
        if thread.waiting_for is not None:
            of_lock = units_by_lock.get(thread.waiting_for.lock, {})
            if thread.tid in of_lock:
                # A thread that waits for a semaphore that it has waits for a signal.
                units_by_lock.pop(thread.waiting_for.lock)
    return {
        id_: tuple(units)
        for id_, units in units_by_lock.items()
        if min(units.values(), default=0) > 0 and sum(units.values()) == candidates[id_].first_value
    }


def _has_no_unit_left(lock: Lock) -> bool:
    """Return whether threads wait for a semaphore that is a lock, and all its units are taken."""
    return bool(
        lock.used_as_lock
        and lock.waiters
        and lock.first_value
        and lock.units_out == lock.first_value
        and not lock.foreign_releases
    )


def taken_units(snapshot: Contents) -> dict[int, TakenUnits]:
    """Return who took the units of each semaphore whose units are all taken, by id.

    The semaphore is used as a lock: only threads that got it have posted it. So a semaphore that
    one thread posts for another, as a producer for a consumer, is left out. All its waiters have
    waited for a second. So no thread got or posted a unit while the counts were read.

    Args:
        snapshot: A classified snapshot (``Lock.used_as_lock``).
    """
    candidates = {
        lock.id: lock
        for lock in snapshot.locks
        if _has_no_unit_left(lock) and not lock.holders and (lock.life_signals or 0) >= _MIN_POSTS
    }
    if not candidates or not snapshot.complete:
        return {}
    for thread in snapshot.threads:
        wait = thread.waiting_for
        if wait is not None and wait.duration_s < _SETTLED_S:
            candidates.pop(wait.lock, None)
    threads = {thread.tid: thread for thread in snapshot.threads}
    taken = {}
    for id_, units in _units_by_thread(snapshot.threads, candidates).items():
        all_units = candidates[id_].first_value or 0
        ended = all_units - sum(units.values())
        if ended >= 0 and min(units.values(), default=0) >= 0:
            takers = [_taker(threads[tid], id_, number) for tid, number in units.items()]
            takers.sort(key=lambda taker: (not threads[taker.tid].alive, -taker.units, taker.tid))
            taken[id_] = TakenUnits(all=all_units, takers=tuple(takers), ended=ended)
    return taken


def semaphores_without_units(snapshot: Contents, deadlocks: Iterable[Deadlock]) -> tuple[Lock, ...]:
    """Return the semaphores of these deadlocks, if all their units are taken and not posted.

    The result is empty if a thread of the deadlocks waits for something else.
    """
    wanted = {edge.waits_for for deadlock in deadlocks for edge in deadlock.cycle}
    locks = tuple(lock for lock in snapshot.locks if lock.id in wanted and lock.taken_units)
    return locks if len(locks) == len(wanted) else ()


def _taker(thread: Thread, lock: int, units: int) -> UnitTaker:
    use = next(use_ for use_ in thread.uses or () if use_.lock == lock)
    return UnitTaker(
        tid=thread.tid, units=units, site=use.site, stack=use.stack, took_more=use.took_more
    )


def _add_holds(thread: Thread, locks: Sequence[Held] | None) -> Thread:
    return replace(thread, holds=(*thread.holds, *locks)) if locks else thread


def _set_wait_holder(thread: Thread, holders: Mapping[int, Thread]) -> Thread:
    wait = thread.waiting_for
    if wait is None or wait.lock not in holders or not holders[wait.lock].alive:
        return thread
    return replace(thread, waiting_for=replace(wait, holders=(holders[wait.lock].tid,)))
