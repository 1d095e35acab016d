"""The last users of System V queues and semaphores (sysvipc(7)). They are hints, no owners."""

from __future__ import annotations

import ctypes
import os

from locktop.collector.linux import procfs

_GETPID = 11  # semctl(2)
_ID, _LAST_SENDER, _LAST_RECEIVER = 1, 5, 6  # the fields of a line of /proc/sysvipc/msg
_semctl = ctypes.CDLL(None, use_errno=True).semctl


def last_sender(pid: int, queue: int) -> int:
    """Return the process that last sent to a queue; 0: none that is known.

    Args:
        pid: a process that uses the queue.
        queue: its id.
    """
    return _queue_field(pid, queue, _LAST_SENDER)


def last_receiver(pid: int, queue: int) -> int:
    """Return the process that last received from a queue. See last_sender()."""
    return _queue_field(pid, queue, _LAST_RECEIVER)


def last_changer(pid: int, semaphores: int, number: int) -> int:
    """Return the process that last changed a semaphore; 0: none that is known.

    Args:
        pid: a process that uses the semaphore.
        semaphores: the id of its set.
        number: its number in the set.
    """
    if not _is_in_our_namespace(pid):
        return 0
    return max(0, int(_semctl(semaphores, number, _GETPID)))


def _queue_field(pid: int, queue: int, field: int) -> int:
    if not _is_in_our_namespace(pid):
        return 0
    try:
        lines = procfs.read("/proc/sysvipc/msg").splitlines()[1:]
    except OSError:
        return 0
    rows = (line.split() for line in lines)
    return next((int(row[field]) for row in rows if int(row[_ID]) == queue), 0)


def _is_in_our_namespace(pid: int) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/ns/ipc") == os.readlink("/proc/self/ns/ipc")
    except OSError:
        return False
