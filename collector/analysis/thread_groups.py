"""Thread groups: threads in one state with one stack, that wait for one lock or class and hold the
same."""

from __future__ import annotations

import re
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile

from locktop.collector.analysis.lock_classes import is_unnamed
from locktop.collector.model import Lock, LockClass, Thread, ThreadGroup, ThreadState, Wait

_DIGITS = re.compile(r"(\d+)")
#: A shorter common prefix of names says nothing.
_MIN_PREFIX = 2


def find(
    threads: Iterable[Thread],
    locks: Mapping[int, Lock],
    class_of: Mapping[int, LockClass],
    alone: Container[int] = (),
    restless: Container[int] = (),
) -> tuple[ThreadGroup, ...]:
    """Return the groups of threads, in the order of their first threads.

    Args:
        threads: The threads; each is in one group.
        locks: The locks by id.
        class_of: The classes by the ids of their locks.
        alone: Tids of threads that each have a group of their own.
        restless: Tids of threads that are grouped by their names alone, because their state changes
            often and says little.
    """
    members: dict[Hashable, list[Thread]] = {}
    awaited: dict[int, Hashable] = {}  # by lock
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
                activity: Hashable = family(thread.name)
            else:
                lock = awaited.get(wait.lock)
                if lock is None:
                    lock = awaited[wait.lock] = _awaited_key(wait, locks.get(wait.lock), class_of)
                activity = lock, wait.stack or wait.site
            key = thread.alive, thread.state, activity, holds
        members.setdefault(key, []).append(thread)
    return tuple([_group(key, alike, locks, class_of) for key, alike in members.items()])


def common_name(names: Sequence[str]) -> str:
    """Return one name for several: their common parts, with ``#`` for numbers that differ."""
    different = list(dict.fromkeys(names))
    if len(different) == 1:
        return different[0]
    parts = list(map(_parts, different))
    if len({name_parts[::2] for name_parts in parts}) == 1:
        columns = zip(*parts, strict=True)
        return "".join(column[0] if len(set(column)) == 1 else "#" for column in columns)
    low, high = min(different), max(different)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(low, high, strict=False)))
    prefix = low[:same]
    return f"{prefix}*" if len(prefix) >= _MIN_PREFIX else "*"


@lru_cache(1 << 15)
def family(name: str) -> str:
    """Return the name with ``#`` for its last number: pool-1-thread-#. The last number is that of a
    thread in its pool; the numbers before are those of pools."""
    parts = _parts(name)
    return "".join((*parts[:-2], "#", parts[-1])) if len(parts) > 1 else name


@lru_cache(1 << 15)
def _parts(name: str) -> tuple[str, ...]:
    """Return texts and numbers in turn, with texts at both ends."""
    return tuple(_DIGITS.split(name))


def _awaited_key(wait: Wait, lock: Lock | None, class_of: Mapping[int, LockClass]) -> Hashable:
    lock_class = class_of.get(wait.lock)
    if lock_class is not None:
        return lock_class.kind, lock_class.name
    if lock is not None and len(lock.waiters) < 2 and is_unnamed(lock):
        return wait.kind  # each thread waits for a lock of its own
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
    classes = {lock_class.name if (lock_class := class_of.get(id_)) else "" for id_ in ids}
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
