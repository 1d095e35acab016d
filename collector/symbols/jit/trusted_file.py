"""Files that a compiler in the target writes about its code, and that anybody could have put there.

A file that is missing or not trusted raises OSError.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from locktop.collector.linux import procfs

#: A file may seem a little older than its process: clocks are coarse.
_SLACK_S = 10.0


def opened(pid: int, directory: str, name: str) -> int:
    """Open a file of the process: a regular file, no link, of the process's user or root."""
    # A FIFO must not make us wait, and a link must not lead elsewhere.
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    parent = os.open(f"{procfs.shared(pid)}/root{directory}", os.O_PATH | os.O_DIRECTORY | flags)
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | flags, dir_fd=parent)
    finally:
        os.close(parent)
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if about.st_uid not in (0, procfs.status(pid).uid):
            raise PermissionError(errno.EPERM, "a file of another user")
    except OSError:
        os.close(fd)
        raise
    return fd


def is_of_this_process(pid: int, about: os.stat_result) -> bool:
    """Tell whether a file was written since the process started.

    The name has only the process id, which an earlier process may have had.
    """
    started = procfs.stat(pid).start_time * procfs.CLOCK_TICK_S
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - started
    return time.time() - about.st_mtime <= age_s + _SLACK_S
