"""The names that traces give to waits and holds: those that Perfetto's lock plugin knows."""

from __future__ import annotations

from collections.abc import Mapping

from locktop.collector.model import Lock, Snapshot, TimedWait

_BRACKETS = str.maketrans("()", "[]")


class LockWords:
    """Names of the locks of a trace. The newest name of a lock counts."""

    def __init__(self) -> None:
        self._locks: dict[int, Lock] = {}

    def add(self, snapshot: Snapshot) -> None:
        """Take the names of a snapshot."""
        self._locks.update((lock.id, lock) for lock in snapshot.locks)

    def plain_name(self, lock: int) -> str:
        """Return the name of a lock."""
        named = self._locks.get(lock)
        return named.name if named is not None else f"lock {lock}"

    def name(self, lock: int) -> str:
        """Return the name of a lock; round brackets, which end a name there, become square ones."""
        return self.plain_name(lock).translate(_BRACKETS)

    def wait(self, wait: TimedWait) -> str:
        """Return the name of a slice that stands for a wait."""
        name = self.name(wait.record.lock)
        if wait.idle:
            return f"Idle wait on {name}"
        owner = f" (owner tid: {wait.record.holder})" if wait.record.holder else ""
        return f"Lock contention on {name} lock{owner}"

    def hold(self, lock: int) -> str:
        """Return the name of a slice that stands for a hold."""
        return f"{self.name(lock)}_lock_held"


def thread_name(threads: Mapping[int, str], tid: int) -> str:
    """Return the name of a thread, or one of its number."""
    return threads.get(tid, "") or f"thread {tid}"
