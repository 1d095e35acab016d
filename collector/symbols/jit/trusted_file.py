"""Opening what a compiler in the target writes about its code: files anybody could have put there.

Everything raises OSError where the file is not there, or not to be trusted.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from locktop.collector.linux import procfs

#: A file may be touched a little before its process is known to have started (clocks are coarse).
_SLACK_S = 10.0


def opened(pid: int, directory: str, name: str) -> int:
    """Return a descriptor of a file as the process sees it: a regular one, no link to another, its
    user's or root's."""
    # A FIFO must not make us wait, a link not lead us elsewhere.
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
            raise PermissionError(errno.EPERM, "somebody else's file")
    except OSError:
        os.close(fd)
        raise
    return fd


def is_of_this_process(pid: int, about: os.stat_result) -> bool:
    """Tell whether a file was written since the process started: its name has only a pid in it,
    which may have been another one's before."""
    started = procfs.stat(pid).start_time * procfs.CLOCK_TICK_S
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - started
    return time.time() - about.st_mtime <= age_s + _SLACK_S
