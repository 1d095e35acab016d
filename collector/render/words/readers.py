"""The words about a reader-writer lock of which only the number of readers is known.

The lock of a process without the library counts its readers, and does not name them.
"""

from __future__ import annotations

from locktop.collector.model import Kind, Lock, LockClass, Wait
from locktop.collector.render.words.units import counted

#: The words behind the number of readers, where there is room.
UNKNOWN = "the lock does not tell which"


def phrase(lock: Lock | LockClass | None) -> str:
    """Return who has the lock: "1 reader", "2 readers"; "" if its readers are known, or none."""
    if not isinstance(lock, Lock) or lock.holders or not lock.readers:
        return ""
    return counted(lock.readers, "reader")


def held_by(lock: Lock | LockClass | None) -> str:
    """Return ", held by 2 readers", "" if phrase() has no words."""
    readers = phrase(lock)
    return f", held by {readers}" if readers else ""


def purpose(wait: Wait) -> str:
    """Return what a thread wants a reader-writer lock for: " to read", " to write", else ""."""
    if wait.kind is not Kind.RWLOCK:
        return ""
    return " to read" if wait.shared else " to write"
