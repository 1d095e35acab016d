"""Files that a compiler in the target writes about its code, and that anybody could have put there.

A file that is missing or not trusted raises OSError.
"""

from __future__ import annotations

import os
import time

from locktop.collector.linux import procfs, regular_file

#: A file may seem a little older than its process: clocks are coarse.
_SLACK_S = 10.0


def open_trusted(pid: int, directory: str, name: str) -> int:
    """Open a file of the process: a regular file, no link, of the process's user or root."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    parent = os.open(f"{procfs.shared_directory(pid)}/root{directory}", flags)
    try:
        owners = (0, procfs.status(pid).uid)
        return regular_file.open_regular(name, directory=parent, owners=owners)
    finally:
        os.close(parent)


def is_of_this_process(pid: int, about: os.stat_result) -> bool:
    """Tell whether a file was written since the process started.

    The name has only the process id, which an earlier process may have had.
    """
    started = procfs.stat(pid).start_time * procfs.CLOCK_TICK_S
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - started
    return time.time() - about.st_mtime <= age_s + _SLACK_S
