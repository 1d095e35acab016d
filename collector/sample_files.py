"""One file of /proc for each thread of a process, kept open between looks."""

from __future__ import annotations

import os
import resource
from collections.abc import Container

_MOST_KEPT = 4096  # open files
_SIZE = 1024


class SampleFiles:
    """The threads' files of one name. Reading an open one costs less than half of opening it anew;
    as many are kept open as descriptors allow."""

    def __init__(self, pid: int, name: str, share: int = 2) -> None:
        """``share``: of the descriptors that this process may have, at most one in so many."""
        self._pid = pid
        self._name = name
        self._fds: dict[int, int] = {}
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        allowed = soft // share if soft != resource.RLIM_INFINITY else _MOST_KEPT
        self._most = min(allowed, _MOST_KEPT)

    def read(self, tid: int) -> bytes:
        """Return what a thread's file says; raises OSError when it has ended."""
        fd = self._fds.get(tid)
        if fd is None:
            path = f"/proc/{self._pid}/task/{tid}/{self._name}"
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            if len(self._fds) >= self._most:
                try:
                    return os.read(fd, _SIZE)
                finally:
                    os.close(fd)
            self._fds[tid] = fd
        try:
            return os.pread(fd, _SIZE, 0)
        except OSError:
            os.close(self._fds.pop(tid))  # the id may come back with another thread
            raise

    def keep_only(self, tids: Container[int]) -> None:
        """Close those of other threads."""
        for tid in [tid for tid in self._fds if tid not in tids]:
            os.close(self._fds.pop(tid))

    def close(self) -> None:
        """Close all."""
        self.keep_only(())
