"""The time limits of sockets of other processes (SO_RCVTIMEO and SO_SNDTIMEO, socket(7))."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from contextlib import suppress

_PIDFD_GETFD = 438  # the same number on all machines since Linux 5.6
_TIMEVAL = struct.Struct("=qq")
_syscall = ctypes.CDLL(None, use_errno=True).syscall


def has_limit(pid: int, fd: int, option: int) -> bool | None:
    """Return whether a socket gives up by itself; None if the kernel does not tell.

    The descriptor is copied for the question, and closed at once (pidfd_getfd(2)). Nothing else
    tells. The process must sleep meanwhile: the other end would see a close of its own a moment
    late.

    Args:
        pid: the process.
        fd: its descriptor of the socket.
        option: socket.SO_RCVTIMEO or SO_SNDTIMEO.
    """
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return None
    copy = -1
    try:
        copy = _syscall(_PIDFD_GETFD, process, fd, 0)
        if copy < 0:
            return None
        with socket.socket(fileno=copy) as copied:
            copy = -1
            value = copied.getsockopt(socket.SOL_SOCKET, option, _TIMEVAL.size)
        return any(_TIMEVAL.unpack(value))
    except (OSError, struct.error):
        return None
    finally:
        os.close(process)
        if copy >= 0:
            with suppress(OSError):
                os.close(copy)
