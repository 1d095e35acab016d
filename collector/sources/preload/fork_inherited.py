"""A child that was forked while another thread of its parent had a lock: nobody gives it back.

The lock's own word names its owner, a thread of the parent. That it is one, and not a thread of the
child that ended, is certain while it lives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from locktop.collector.linux import procfs
from locktop.collector.model import Kind, Lock, Misuse, MisuseKind, Thread

#: A lock may have a new owner whom nobody has seen yet.
_SETTLED_S = 0.1
_OWNED = frozenset({Kind.MUTEX, Kind.RWLOCK})


def held_at_fork(
    pid: int, forked_from: int, threads: Iterable[Thread], locks: Mapping[int, Lock]
) -> tuple[Misuse, ...]:
    """Return the waits for locks that threads of the parent had when it forked ``pid``.

    ``forked_from``: its pid as the child saw it, 0 if it executed a program since."""
    if not forked_from:
        return ()
    threads = list(threads)
    living = {thread.tid for thread in threads if thread.alive}
    found = []
    for thread in threads:
        wait = thread.waiting_for
        if wait is None or wait.kind not in _OWNED or wait.pshared or wait.duration_s < _SETTLED_S:
            continue
        owner, lock = wait.holder_seen, locks.get(wait.lock)
        if not owner or owner in living or lock is None or lock.foreign_releases:
            continue
        if _is_thread_of_parent(pid, forked_from, owner):
            kind = MisuseKind.HELD_AT_FORK
            found.append(Misuse(kind, wait.lock, thread.tid, owner, wait.stack, 1, wait.duration_s))
    return tuple(found)


def _is_thread_of_parent(pid: int, forked_from: int, tid: int) -> bool:
    """In another pid namespace the numbers are others: then it is not known."""
    try:
        parent = procfs.stat(pid).parent
        return parent == forked_from and Path(f"/proc/{parent}/task/{tid}").exists()
    except (OSError, ValueError):
        return False
