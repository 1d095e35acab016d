"""Locks that another thread of the parent held at a fork: no thread of the child releases them.

The lock's own word names its owner, a thread of the parent. While that thread lives, it is certain
that the owner is not an ended thread of the child.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from locktop.collector.linux import procfs
from locktop.collector.model import Lock, Misuse, MisuseKind, Thread
from locktop.collector.model.kinds import OWNER_IN_MEMORY_KINDS

#: Seconds until a new owner of a lock is visible for certain.
_SETTLED_S = 0.1


def held_at_fork(
    pid: int, forked_from: int, threads: Iterable[Thread], locks: Mapping[int, Lock]
) -> tuple[Misuse, ...]:
    """Return the waits for locks that threads of the parent held when the parent forked.

    Args:
        pid: the child.
        forked_from: the parent's pid as the child saw it; 0: the child executed a program since.
        threads: the threads of the child.
        locks: the locks of the child, by id.
    """
    if not forked_from:
        return ()
    threads = list(threads)
    living = {thread.tid for thread in threads if thread.alive}
    misuses = []
    for thread in threads:
        wait = thread.waiting_for
        if (
            wait is None
            or wait.kind not in OWNER_IN_MEMORY_KINDS
            or wait.pshared
            or wait.duration_s < _SETTLED_S
        ):
            continue
        owner, lock = wait.holder_seen, locks.get(wait.lock)
        if not owner or owner in living or lock is None or lock.foreign_releases:
            continue
        if _is_thread_of_parent(pid, forked_from, owner):
            misuses.append(
                Misuse(
                    kind=MisuseKind.HELD_AT_FORK,
                    lock=wait.lock,
                    tid=thread.tid,
                    other=owner,
                    stack=wait.stack,
                    count=1,
                    ago_s=wait.duration_s,
                )
            )
    return tuple(misuses)


def owners_left_by_fork(
    pid: int, forked_from: int, threads: Iterable[Thread], parent_tids: Set[int]
) -> frozenset[int]:
    """Return the tids of the owners that threads wait for, and that are threads of the parent.

    Args:
        pid: see ``held_at_fork``.
        forked_from: see ``held_at_fork``.
        threads: the threads of the child.
        parent_tids: the result of the scan before. An owner stays one after its end.
    """
    if not forked_from:
        return frozenset()
    threads = list(threads)
    waits = [thread.waiting_for for thread in threads if thread.waiting_for is not None]
    owners = {wait.holder_seen for wait in waits if wait.kind in OWNER_IN_MEMORY_KINDS}
    owners -= {0, *(thread.tid for thread in threads)}
    return frozenset(
        tid for tid in owners if tid in parent_tids or _is_thread_of_parent(pid, forked_from, tid)
    )


def _is_thread_of_parent(pid: int, forked_from: int, tid: int) -> bool:
    """Return whether a thread of the parent has had a tid since before the fork.

    The result is False across pid namespaces, whose numbers differ.
    """
    try:
        child = procfs.stat(pid)
        if child.parent != forked_from:
            return False
        return procfs.thread_stat(forked_from, tid).start_time <= child.start_time
    except (OSError, ValueError):
        return False
