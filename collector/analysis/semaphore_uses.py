"""Semaphores that are used as locks, as far as what threads did with them tells: some were free at
first, and only threads that had got one have given any back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from locktop.collector.analysis.idle.rules import Rule
from locktop.collector.model import Contents, Kind, Lock, Use

_NOTHING = Use(0, 0)
#: Posts that must be seen of one that lies where another one was.
_ENOUGH = 3


class _First(NamedTuple):
    """What threads had done when the semaphore was seen waited for first."""

    lock: Lock
    uses: Mapping[int, Use]  # by tid


class SemaphoreUses:
    """Watches semaphores from one look to the next."""

    def __init__(self) -> None:
        self._first: dict[int, _First] = {}  # by lock, of those that lie where another one was
        self._known: dict[int, int] = {}  # by lock, its generation
        self._idle_cache: dict[int, int] = {}  # the same of those that functions told of
        #: Whether, in the last look, one was waited for of which only the next look tells.
        self.is_new = False

    def told(self, snapshot: Contents) -> frozenset[int]:
        """Return the ids of those that are used as locks. What a saved snapshot says stays so."""
        found = {
            lock.id: lock
            for lock in snapshot.locks
            if lock.kind is Kind.SEM
            and lock.wait_s > 0
            and (lock.first_value > 0 or lock.used_as_lock or lock.id in self._idle_cache)
        }
        uses = _uses(snapshot, found) if found else {}
        self.is_new = False
        as_locks = [lock for lock in found.values() if self._is_one(lock, uses.get(lock.id))]
        self._first = {id_: first for id_, first in self._first.items() if id_ in found}
        self._known = {lock.id: lock.generation for lock in as_locks}
        return frozenset(self._known)

    def learn(self, snapshot: Contents, rules: Mapping[int, Rule]) -> frozenset[int]:
        """Take what a rule says of one thread's wait for what others wait for, too, where it is for
        all: waits may be over before their functions are known. ``rules``: by tid, what the waits
        of the look that was told last fit. Return what is known now."""
        waits = [
            (thread.waiting_for, rule)
            for thread in snapshot.threads
            if thread.waiting_for is not None
            and thread.waiting_for.kind is Kind.SEM
            and (rule := rules[thread.tid]).for_all
        ]
        if waits or self._idle_cache:
            lives = {lock.id: lock.generation for lock in snapshot.locks}
            self._idle_cache = {id_: life for id_, life in self._idle_cache.items() if id_ in lives}
            for wait, rule in waits:
                if rule.idle:
                    self._idle_cache.pop(wait.lock, None)
                    self._known.pop(wait.lock, None)
                elif wait.lock in lives:
                    self._idle_cache[wait.lock] = self._known[wait.lock] = lives[wait.lock]
        return frozenset(self._known)

    def _is_one(self, lock: Lock, uses: Mapping[int, Use] | None) -> bool:
        if lock.used_as_lock or self._idle_cache.get(lock.id) == lock.generation:
            return True
        was = self._known.get(lock.id) == lock.generation
        if not lock.generation:
            # Threads are read one after the other, so that sums are a little off at times.
            by_us = was or lock.acquisitions - lock.signals <= lock.first_value
            return lock.signals > 0 and by_us and not lock.foreign_releases
        # Who did what is told of those that are waited for.
        return was if uses is None or not lock.waiters else self._seen_to_be(lock, uses, was)

    def _seen_to_be(self, lock: Lock, uses: Mapping[int, Use], was: bool) -> bool:
        """Of one that lies where another one was the figures are sums over all of them, so only
        what was done since it was seen first counts. What threads had of it then they may post."""
        first = self._first.get(lock.id)
        if first is None or first.lock.generation != lock.generation:
            self._first[lock.id] = _First(lock, uses)
            self.is_new = True
            return was
        posts = had = 0
        for tid, use in uses.items():
            before = first.uses.get(tid, _NOTHING)
            posted, got = use.signals - before.signals, use.acquisitions - before.acquisitions
            if posted < 0 or got < 0:  # another thread has that id by now
                self._first[lock.id] = _First(lock, uses)
                return was
            posts += posted
            had += max(0, posted - got)
        if had > lock.first_value:
            return False
        by_others = lock.signals - first.lock.signals - posts  # threads that ended
        return was or (not by_others and posts >= _ENOUGH + lock.first_value)


def _uses(snapshot: Contents, wanted: Mapping[int, Lock]) -> dict[int, dict[int, Use]]:
    """By lock and tid; nothing where it is not known what all threads did."""
    found: dict[int, dict[int, Use]] = {}
    for thread in snapshot.threads:
        if thread.uses is None and thread.alive:
            return {}
        for use in thread.uses or ():
            if use.lock in wanted:
                found.setdefault(use.lock, {})[thread.tid] = use
    return found
