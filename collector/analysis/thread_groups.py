"""Threads that do the same, as one group: in one state, for one lock or class of locks, in one
stack, with the same locks in their hands."""

from __future__ import annotations

import re
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import takewhile

from locktop.collector.analysis.lock_classes import LockClass, is_unnamed
from locktop.collector.model import Kind, Lock, Thread, ThreadState, Wait

_DIGITS = re.compile(r"(\d+)")
#: A shorter beginning that names have in common says nothing.
_MIN_PREFIX = 2


@dataclass(frozen=True)  # no slots: what is asked for again and again is kept
class ThreadGroup:
    """One or more threads that do the same."""

    key: Hashable  # the same from one look to the next
    threads: tuple[Thread, ...]  # who is blocked first, of those the longest wait, then by tid
    name: str  # of all: pool-1-thread-#
    lock: int  # id, 0 where they wait for none that is known, or for several
    lock_name: str  # of the lock, or of the class that all of theirs are in; "" without one

    @property
    def first(self) -> Thread:
        """The one that waits longest."""
        return self.threads[0]

    @property
    def state(self) -> ThreadState:
        """Of each of them, of restless ones the first one's."""
        return self.first.state

    @cached_property
    def states(self) -> frozenset[ThreadState]:
        """Those of all of them, of which there may be several where they are restless."""
        return frozenset(thread.state for thread in self.threads)

    @cached_property
    def holds(self) -> int:
        """How many locks they hold together."""
        return sum(len(thread.holds) for thread in self.threads)

    @property
    def wait(self) -> Wait | None:
        """The longest."""
        return self.first.waiting_for

    @cached_property
    def tids(self) -> tuple[int, ...]:
        """Their ids."""
        return tuple(thread.tid for thread in self.threads)

    @property
    def kind(self) -> Kind | None:
        """What kind of lock they wait for."""
        return self.wait.kind if self.wait is not None else None

    @cached_property
    def locks(self) -> tuple[int, ...]:
        """The ids of all that they wait for, that of the first first."""
        waits = (thread.waiting_for for thread in self.threads)
        return tuple(dict.fromkeys(wait.lock for wait in waits if wait is not None))

    @cached_property
    def holders(self) -> tuple[int, ...]:
        """Who holds what they wait for, tids, each once."""
        waits = (thread.waiting_for for thread in self.threads)
        return tuple(dict.fromkeys(tid for wait in waits if wait for tid in wait.holders))


def find(
    threads: Iterable[Thread],
    locks: Mapping[int, Lock],
    class_of: Mapping[int, LockClass],
    alone: Container[int] = (),
    restless: Container[int] = (),
) -> tuple[ThreadGroup, ...]:
    """Return the groups, in the order of their first threads. Each thread is in one, those of
    ``alone`` each in one of its own; ``class_of`` gives the class of a lock by its id. Those of
    ``restless`` are told apart by their names alone: what they do at a moment says little."""
    found: dict[Hashable, list[Thread]] = {}
    places: dict[int, Hashable] = {}  # by lock
    for thread in threads:
        wait = thread.waiting_for
        key: Hashable
        if thread.tid in alone:
            key = thread.tid
        elif thread.tid in restless:
            key = family(thread.name)
        else:
            holds = tuple([held.lock for held in thread.holds]) if thread.holds else ()
            if wait is None:
                what: Hashable = family(thread.name)
            else:
                place = places.get(wait.lock)
                if place is None:
                    place = places[wait.lock] = _place(wait, locks.get(wait.lock), class_of)
                what = place, wait.stack or wait.site
            key = thread.alive, thread.state, what, holds
        found.setdefault(key, []).append(thread)
    return tuple([_group(key, alike, locks, class_of) for key, alike in found.items()])


def common_name(names: Sequence[str]) -> str:
    """Return one name for all: what they have in common, with ``#`` for numbers that differ."""
    different = list(dict.fromkeys(names))
    if len(different) == 1:
        return different[0]
    parts = list(map(_parts, different))
    if len({one[::2] for one in parts}) == 1:
        columns = zip(*parts, strict=True)
        return "".join(column[0] if len(set(column)) == 1 else "#" for column in columns)
    low, high = min(different), max(different)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(low, high, strict=False)))
    prefix = low[:same]
    return f"{prefix}*" if len(prefix) >= _MIN_PREFIX else "*"


@lru_cache(1 << 15)
def family(name: str) -> str:
    """Return the name with ``#`` for its last number, which tells those of one pool apart; the
    ones before tell pools apart: pool-1-thread-#."""
    parts = _parts(name)
    return "".join((*parts[:-2], "#", parts[-1])) if len(parts) > 1 else name


@lru_cache(1 << 15)
def _parts(name: str) -> tuple[str, ...]:
    """Texts and numbers in turn, texts at both ends."""
    return tuple(_DIGITS.split(name))


def _place(wait: Wait, lock: Lock | None, class_of: Mapping[int, LockClass]) -> Hashable:
    of = class_of.get(wait.lock)
    if of is not None:
        return of.kind, of.name
    if lock is not None and len(lock.waiters) < 2 and is_unnamed(lock):
        return wait.kind  # each thread has one of its own to wait at
    return wait.lock, wait.kind


def _group(
    key: Hashable,
    threads: list[Thread],
    locks: Mapping[int, Lock],
    class_of: Mapping[int, LockClass],
) -> ThreadGroup:
    if len(threads) > 1:
        threads.sort(key=_longest_first)
    ids = {thread.waiting_for.lock for thread in threads if thread.waiting_for}
    lock = locks.get(next(iter(ids))) if len(ids) == 1 else None
    classes = {of.name if (of := class_of.get(id_)) else "" for id_ in ids}
    return ThreadGroup(
        key=key,
        threads=tuple(threads),
        name=common_name([thread.name for thread in threads]),
        lock=lock.id if lock is not None else 0,
        lock_name=lock.name if lock is not None else classes.pop() if len(classes) == 1 else "",
    )


def _longest_first(thread: Thread) -> tuple[bool, float, int]:
    since = -thread.waiting_for.duration_s if thread.waiting_for is not None else 0.0
    return thread.state is not ThreadState.WAITING, since, thread.tid
