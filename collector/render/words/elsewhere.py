"""Threads of other processes that hold locks in shared memory: their names, and advice."""

from __future__ import annotations

from locktop.collector.model import Lock, Snapshot, ThreadElsewhere

_UNKNOWN = "a thread of another process"


def process(thread: ThreadElsewhere) -> str:
    """Return the name and pid of the thread's process: ``convert 4802``."""
    return f"{thread.comm} {thread.pid}"


def short_name(thread: ThreadElsewhere) -> str:
    """Return a name for a table: ``convert 4802``, ``worker of convert 4802``.

    A thread of which locktop only knows the id is ``thread 4810 of another process``.
    """
    if not thread.comm:
        return f"thread {thread.tid} of another process" if thread.pid else _UNKNOWN
    if not thread.name:
        return process(thread)
    name = f"thread {thread.tid}" if thread.name == thread.comm else thread.name
    return f"{name} of {process(thread)}"


def full_name(thread: ThreadElsewhere) -> str:
    """Return the same with the thread id: ``worker of convert 4802 (thread 4810)``."""
    name = short_name(thread)
    has_id = not thread.name or thread.name == thread.comm
    return name if has_id else f"{name} (thread {thread.tid})"


def holder_names(snapshot: Snapshot) -> str:
    """Return the names of all such holders: ``convert 4802 and httpd 4803``, "" for none."""
    names = list(dict.fromkeys(short_name(thread) for thread in snapshot.threads_elsewhere))
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def advice(thread: ThreadElsewhere, lock: Lock) -> str:
    """Return what to do about a mutex that a thread of another process holds; "" if not known."""
    if not thread.comm:
        return ""
    parts = [f"`locktop -p {thread.pid}` shows what that process does."]
    if lock.waiters and not thread.is_freed_at_exit:
        parts.append(
            f"The mutex is not robust: if {process(thread)} dies now, all wait for ever."
            " PTHREAD_MUTEX_ROBUST helps."
        )
    return " ".join(parts)
