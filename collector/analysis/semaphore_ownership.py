"""Semaphores that are used as locks: which semaphores are locks, and which thread owns one.

No thread owns a semaphore. But a program can use a semaphore as a lock. Then some units are free at
first, and a thread posts the semaphore only after the thread got it. ``SemaphoreLocks`` finds such
semaphores from scan to scan, by the counts of each thread.

``annotate_holders`` finds the holder of such a semaphore with one unit. Each count is exact at the
moment of its reading. So a thread that is one ahead (one acquisition more than posts) has the unit.

Two facts limit that. A semaphore that was destroyed while a thread had it leaves that thread one
ahead. If a new semaphore has the same address, that thread and the holder are both ahead. And a
scan reads the threads one after the other, so it may miss a unit that changes hands meanwhile. If
two readings show the same counts, all counts were so at one moment between the readings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from locktop.collector.model import Contents, Draft, Held, Kind, Lock, LockUse, Thread

_NO_USE = LockUse(lock=0, acquisitions=0)
#: How many posts must be observed where another semaphore had the same address before.
_MIN_POSTS = 3


class RuleVerdict(Protocol):
    """The verdict of an idle rule (analysis/idle/rules.py), as far as it is about semaphores."""

    @property
    def idle(self) -> bool:
        """Whether the wait is for work."""

    @property
    def for_all(self) -> bool:
        """Whether the verdict on one wait for a semaphore holds for its other waits too."""


class SemaphoreUse(Protocol):
    """The use that a thread made of a semaphore; both types named ``Use`` match."""

    @property
    def lock(self) -> int:
        """The id of the semaphore."""

    @property
    def acquisitions(self) -> int:
        """How often the thread got the semaphore."""

    @property
    def signals(self) -> int:
        """How often the thread posted the semaphore."""


#: Reads the counts once more: by tid, what each thread did.
ReadAgain = Callable[[], Mapping[int, Iterable[SemaphoreUse]]]


class _Baseline(NamedTuple):
    """The counts in the scan that first showed a semaphore with a waiter."""

    generation: int
    signals: int
    uses: Mapping[int, LockUse]  # by tid


class SemaphoreLocks:
    """Finds the semaphores that are used as locks, from one scan to the next."""

    def __init__(self) -> None:
        #: By lock id, of semaphores whose address had another semaphore before.
        self._baselines: dict[int, _Baseline] = {}
        self._generations: dict[int, int] = {}  # of the known locks, by id
        #: The same, of the semaphores that are locks because a rule says so.
        self._by_rule: dict[int, int] = {}
        #: Whether a semaphore of the last scan can be decided only by the next scan.
        self.needs_another_scan = False

    def observe(self, snapshot: Contents) -> frozenset[int]:
        """Return the ids of the semaphores that are used as locks. A semaphore that a saved
        snapshot names as a lock stays a lock."""
        found = {
            lock.id: lock
            for lock in snapshot.locks
            if lock.kind is Kind.SEM
            and lock.wait_s > 0
            and (lock.first_value or lock.used_as_lock or lock.id in self._by_rule)
        }
        uses = _uses_by_lock(snapshot, found) if found else {}
        self.needs_another_scan = False
        as_locks = [lock for lock in found.values() if self._is_lock(lock, uses.get(lock.id))]
        self._baselines = {id_: one for id_, one in self._baselines.items() if id_ in found}
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
            self._by_rule = {id_: one for id_, one in self._by_rule.items() if id_ in present}
            for wait, rule in waits:
                if rule.idle:
                    self._by_rule.pop(wait.lock, None)
                    self._generations.pop(wait.lock, None)
                elif wait.lock in present:
                    self._by_rule[wait.lock] = self._generations[wait.lock] = present[wait.lock]
        return frozenset(self._generations)

    def _is_lock(self, lock: Lock, uses: Mapping[int, LockUse] | None) -> bool:
        if lock.used_as_lock or self._by_rule.get(lock.id) == lock.generation:
            return True
        was_lock = self._generations.get(lock.id) == lock.generation
        if lock.units_out is None or lock.signals is None or lock.first_value is None:
            return was_lock
        if not lock.generation:
            # A scan reads the threads one after the other, so sums may be a little wrong.
            by_us = was_lock or lock.units_out <= lock.first_value
            return lock.signals > 0 and by_us and not lock.foreign_releases
        # The counts of the threads are known only of semaphores with a waiter.
        if uses is None or not lock.waiters:
            return was_lock
        now = _Baseline(lock.generation, lock.signals, uses)
        return self._is_lock_since_baseline(lock.id, now, lock.first_value, was_lock)

    def _is_lock_since_baseline(
        self, lock: int, now: _Baseline, first_value: int, was_lock: bool
    ) -> bool:
        """Decide on a semaphore at an address that had another semaphore before. Its counts are
        sums over all semaphores of that address, so only the changes since the baseline count. A
        thread may post the units that the thread had at the baseline."""
        baseline = self._baselines.get(lock)
        if baseline is None or baseline.generation != now.generation:
            self._baselines[lock] = now
            self.needs_another_scan = True
            return was_lock
        posts = had = 0
        for tid, use in now.uses.items():
            before = baseline.uses.get(tid, _NO_USE)
            posted, got = use.signals - before.signals, use.acquisitions - before.acquisitions
            if posted < 0 or got < 0:  # another thread has that tid now
                self._baselines[lock] = now
                return was_lock
            posts += posted
            had += max(0, posted - got)
        if had > first_value:
            return False
        by_ended_threads = now.signals - baseline.signals - posts
        return was_lock or (not by_ended_threads and posts >= _MIN_POSTS + first_value)


def _uses_by_lock(snapshot: Contents, wanted: Mapping[int, Lock]) -> dict[int, dict[int, LockUse]]:
    """Return the uses by lock and tid; empty if the uses of a living thread are not known."""
    found: dict[int, dict[int, LockUse]] = {}
    for thread in snapshot.threads:
        if thread.uses is None and thread.alive:
            return {}
        for use in thread.uses or ():
            if use.lock in wanted:
                found.setdefault(use.lock, {})[thread.tid] = use
    return found


# ---- holders ----


def annotate_holders(snapshot: Draft, read_again: ReadAgain) -> None:
    """Fill in the holders of the semaphores that are used as locks.

    A holder appears in its lock, in the waits for that lock, and in ``Thread.holds``. A semaphore
    without a waiter has no known holder.

    Args:
        snapshot: A classified draft (``Lock.used_as_lock``).
        read_again: Called only if an address had another semaphore before.
    """
    candidates = {lock.id: lock for lock in snapshot.locks if _can_have_known_holder(lock)}
    if not candidates or not snapshot.complete:
        return
    holders = dict(_find_holders(snapshot.threads, candidates))
    unsure = {lock for lock in holders if candidates[lock].generation}
    if unsure:
        before = _counts({thread.tid: thread.uses or () for thread in snapshot.threads}, unsure)
        now = _counts(read_again(), unsure)
        for lock in unsure:
            if before[lock] != now[lock]:
                del holders[lock]
    if not holders:
        return
    held: dict[int, list[Held]] = {}
    for lock, holder in holders.items():
        held.setdefault(holder.tid, []).append(Held(lock=lock, site=0, duration_s=None))
    snapshot.threads = tuple(
        [
            _with_wait_holder(_with_holds(thread, held.get(thread.tid)), holders)
            for thread in snapshot.threads
        ]
    )
    snapshot.locks = tuple(
        [
            replace(lock, holders=(holders[lock.id].tid,)) if lock.id in holders else lock
            for lock in snapshot.locks
        ]
    )


def _counts(
    uses: Mapping[int, Iterable[SemaphoreUse]], locks: Iterable[int]
) -> dict[int, set[tuple[int, int, int]]]:
    """Return by lock what each thread did: tid, acquisitions, posts."""
    found: dict[int, set[tuple[int, int, int]]] = {lock: set() for lock in locks}
    for tid, of_thread in uses.items():
        for use in of_thread:
            if use.lock in found:
                found[use.lock].add((tid, use.acquisitions, use.signals))
    return found


def _can_have_known_holder(lock: Lock) -> bool:
    return (
        lock.used_as_lock
        and bool(lock.waiters)
        and lock.first_value == 1
        and not lock.foreign_releases
        and lock.units_out == 1
    )


def _find_holders(
    threads: Iterable[Thread], candidates: Mapping[int, Lock]
) -> Iterable[tuple[int, Thread]]:
    """Yield the ids of semaphores with their holders."""
    ahead: dict[int, dict[int, int]] = {lock: {} for lock in candidates}
    by_tid: dict[int, Thread] = {}
    for thread in threads:
        if thread.uses is None:
            return  # this thread may have got any of them
        if thread.waiting_for is not None and thread.waiting_for.pshared:
            ahead.pop(thread.waiting_for.lock, None)  # the counts of other processes are not known
        for use in thread.uses:
            if use.lock in ahead and use.acquisitions != use.signals:
                ahead[use.lock][thread.tid] = use.acquisitions - use.signals
                by_tid[thread.tid] = thread
    for lock, units in ahead.items():
        if list(units.values()) == [1]:
            holder = by_tid[next(iter(units))]
            wait = holder.waiting_for
            # A thread that waits for a semaphore that it has waits for a signal.
            if wait is None or wait.lock != lock:
                yield lock, holder


def _with_holds(thread: Thread, locks: Sequence[Held] | None) -> Thread:
    return replace(thread, holds=(*thread.holds, *locks)) if locks else thread


def _with_wait_holder(thread: Thread, holders: Mapping[int, Thread]) -> Thread:
    wait = thread.waiting_for
    if wait is None or wait.lock not in holders or not holders[wait.lock].alive:
        return thread
    return replace(thread, waiting_for=replace(wait, holders=(holders[wait.lock].tid,)))
