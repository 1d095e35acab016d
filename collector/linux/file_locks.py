"""The locks of files, and the processes that wait for them (proc_locks(5))."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from locktop.collector.linux import procfs


class FileLock(NamedTuple):
    """A lock, or a wait for one."""

    number: int  # a lock and the waits for it have the same
    waits: bool
    type: str  # "POSIX", "FLOCK", "OFDLCK" or "LEASE"
    is_write: bool
    pid: int  # the process that took it or waits for it; -1 of an open file description
    file: str  # major and minor number of the device, and inode: "fe:00:1234"


def read_all() -> list[FileLock]:
    """Return all locks of the machine; none if the kernel hides them."""
    try:
        lines = procfs.read("/proc/locks").decode("ascii", "replace").splitlines()
    except OSError:
        return []
    return [lock for line in lines if (lock := parse(line)) is not None]


def parse(line: str) -> FileLock | None:
    """Return the lock of a line of /proc/locks, or of an fdinfo; None for another line."""
    number, _, rest = line.strip().partition(":")
    fields: Sequence[str] = rest.split()
    waits = fields[:1] == ["->"]
    fields = fields[1:] if waits else fields
    if not number.isdigit() or len(fields) < 5:
        return None
    type_, _, mode, pid, file = fields[:5]
    return FileLock(int(number), waits, type_, mode == "WRITE", int(pid), file)
